"""Two submissions at once that would each close half of a circle of jobs: one of them is refused, on every database."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from fleet.errors import InvalidInput
from jobs.models import Job
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_refuses_one_of_two_halves_of_a_circle():
    books.apply(pytorch_job("other"))
    both = Barrier(2, timeout=180)

    def submit(name: str, after: str) -> bool:
        try:
            both.wait()
            books.apply(books.annotated("convoy.dev/after", after, pytorch_job(name)))
        except InvalidInput as error:
            assert "a after b after a" in str(error) or "b after a after b" in str(error)
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as threads:
        taken = list(threads.map(submit, ("a", "b"), ("b", "a")))
    assert sorted(taken) == [False, True]
    assert Job.objects.filter(name__in=["a", "b"]).count() == 1
