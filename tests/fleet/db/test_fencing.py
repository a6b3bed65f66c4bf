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


def test_it_takes_back_what_the_transaction_wrote_before_the_check_failed(fence):
    with fencing.fenced(fence), pytest.raises(Lost), transaction.atomic():
        Lease.objects.create(name="a")
        fence.open = False
        Lease.objects.create(name="b")
    assert not Lease.objects.exists()


def test_it_ends_with_its_block(fence):
    with fencing.fenced(fence):
        fence.open = False
    Lease.objects.create(name="a")
    bulk.insert(events(9))
    assert Lease.objects.exists() and Event.objects.count() == 9
