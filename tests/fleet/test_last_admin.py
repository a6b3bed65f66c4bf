"""Two fleet admins who remove each other at the same moment: one of them stays."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from fleet.errors import Conflict
from fleet.models import Grant
from fleet.services.authorization import grants, users
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 8


def at_once(deeds: list[Callable[[], object]]) -> int:
    """How many of them were refused."""
    ready = threading.Barrier(len(deeds))

    def run(deed: Callable[[], object]) -> int:
        connection.ensure_connection()
        ready.wait()
        try:
            deed()
        except Conflict:
            return 1
        finally:
            connection.close()
        return 0

    with ThreadPoolExecutor(len(deeds)) as threads:
        return sum(threads.map(run, deeds))


def test_of_two_who_disable_each_other_one_stays() -> None:
    for number in range(ROUNDS):
        names = [f"a{number}", f"b{number}"]
        for name in names:
            person(name, (Grant.Role.FLEET_ADMIN, ""))
        assert at_once([lambda name=name: users.disable(name) for name in names]) == 1  # type: ignore[misc]
        assert get_user_model().objects.filter(is_active=True).count() == 1
        get_user_model().objects.all().delete()


def test_of_two_whose_roles_are_taken_back_one_stays() -> None:
    for number in range(ROUNDS):
        for name in ("a", "b"):
            person(f"{name}{number}", (Grant.Role.FLEET_ADMIN, ""))
        ids = list(Grant.objects.values_list("pk", flat=True))
        assert at_once([lambda pk=pk: grants.take_back(pk) for pk in ids]) == 1  # type: ignore[misc]
        assert Grant.objects.count() == 1
        get_user_model().objects.all().delete()
