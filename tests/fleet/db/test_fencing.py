"""Writes of a thread under a condition that is checked in their own transaction; also run on PostgreSQL."""

import pytest
from django.db import connection, transaction
from django.utils import timezone

from fleet.db import bulk, fencing
from fleet.models import Event, Lease
from jobs.services.lifecycle import cycle_requests

pytestmark = pytest.mark.django_db(transaction=True)


class Lost(Exception):
    pass


class Fence:
    """Passes until it is closed, and writes down in which state of the connection it was checked."""

    def __init__(self):
        self.open, self.in_transaction = True, []

    def __call__(self):
        if not self.open:
            raise Lost
        self.in_transaction.append(connection.in_atomic_block)


@pytest.fixture
def fence():
    return Fence()


def events(count):
    now = timezone.now()
    return [
        Event(regarding_kind="Job", regarding_name=str(n), reason="Test", first_at=now, last_at=now)
        for n in range(count)
    ]


def test_it_checks_a_single_statement_in_a_transaction_of_its_own(fence):
    with fencing.fenced(fence):
        Lease.objects.create(name="a")
        Lease.objects.filter(name="a").update(epoch=1)
    assert fence.in_transaction == [True, True] and Lease.objects.get().epoch == 1


def test_it_checks_nothing_for_reads(fence):
    fence.open = False
    with fencing.fenced(fence), transaction.atomic():
        assert not Lease.objects.select_for_update().filter(name="a").exists()


def test_it_asks_for_a_cycle_though_the_check_fails_once_the_change_is_committed(fence):
    with fencing.fenced(fence):
        with transaction.atomic():
            Lease.objects.create(name="a")
            transaction.on_commit(lambda: setattr(fence, "open", False))
            cycle_requests.request()
        assert cycle_requests.requests() == 1
        with pytest.raises(Lost):
            Lease.objects.create(name="b")


@pytest.mark.parametrize("count", [1, 9])
def test_it_writes_nothing_when_the_check_fails(fence, count):
    """Nine rows travel as a stream on PostgreSQL, which is no statement."""
    fence.open = False
    writes = (
        lambda: Lease.objects.create(name="a"),
        lambda: bulk.insert(events(count)),
        lambda: Lease.objects.bulk_create([Lease(name="b"), Lease(name="c")]),
    )
    for write in writes:
        with fencing.fenced(fence), pytest.raises(Lost):
            write()
    assert not Lease.objects.exists() and not Event.objects.exists()


@transaction.atomic
def write_twice(name):
    """The decorator's block is the same object at each call."""
    Lease.objects.create(name=name)
    Lease.objects.filter(name=name).update(epoch=1)


def test_it_checks_once_in_each_transaction(fence):
    with fencing.fenced(fence):
        write_twice("a")
        assert len(fence.in_transaction) == 1
        fence.open = False
        with pytest.raises(Lost):
            write_twice("b")
    assert Lease.objects.get().name == "a"


def test_it_checks_again_when_the_savepoint_of_the_check_is_undone(fence):
    """With the savepoint goes the lock that the check took."""
    with fencing.fenced(fence), transaction.atomic():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Lease.objects.create(name="a")
            raise ZeroDivisionError
        Lease.objects.create(name="b")
        assert len(fence.in_transaction) == 2
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Lease.objects.create(name="c")
            raise ZeroDivisionError
        Lease.objects.create(name="d")
    assert len(fence.in_transaction) == 2 and Lease.objects.count() == 2


def test_a_block_is_not_satisfied_by_the_check_of_the_one_before_in_a_transaction(fence):
    with transaction.atomic():
        with fencing.fenced(fence):
            Lease.objects.create(name="a")
        with fencing.fenced(fence):
            Lease.objects.create(name="b")
    assert len(fence.in_transaction) == 2


def test_it_ends_with_its_block(fence):
    with fencing.fenced(fence):
        fence.open = False
    Lease.objects.create(name="a")
    bulk.insert(events(9))
    assert Lease.objects.exists() and Event.objects.count() == 9
