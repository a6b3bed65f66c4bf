"""More members than a process has database connections: each of them is watched all the same."""

import threading

import pytest
from django.db import connection
from django.utils import timezone

from fleet.models import Cluster
from fleet.services.members import member_clients
from tests.support.members import add_node, eventually

pytestmark = pytest.mark.django_db(transaction=True)
MEMBERS = 24


def test_it_watches_24_members_with_few_connections(north, watching):
    """One server under many names, so that they are cheap."""
    now = timezone.now()
    add_node(north, "n1")
    access = member_clients.stored(north.access())
    threads = threading.active_count()
    for number in range(MEMBERS):
        name = f"m{number}"
        Cluster.objects.create(name=name, access=access, state="Ready", state_since=now, joined_at=now)
    end = watching()
    eventually(lambda: Cluster.objects.filter(synced_at__isnull=False, nodes__name="n1").count() == MEMBERS, 120)
    eventually(lambda: Cluster.objects.filter(watched_until__gt=now).count() == MEMBERS, 120)
    assert threading.active_count() - threads < MEMBERS, "threads grow with the members"
    if connection.vendor == "postgresql":
        assert connection.settings_dict["OPTIONS"]["pool"]["max_size"] < MEMBERS
    end()
