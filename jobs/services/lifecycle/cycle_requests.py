"""Requests for a scheduling cycle: each change that may let a job start adds one, and cycles run until all are served.

Requests are counted in the database, so that one made while a cycle runs is not lost.
"""

from django.db import connection, transaction

from fleet.changes import events
from fleet.db import fencing
from fleet.services.operations import lease_requests

LEASE = lease_requests.SCHEDULER


def request() -> None:
    """Asks for a cycle once the transaction commits."""
    if all(hook[1] is not _count_request for hook in connection.run_on_commit):
        transaction.on_commit(_count_request, robust=True)


def _count_request() -> None:
    # The change is committed: a watcher that loses its member at this moment must not take the request back.
    with fencing.lifted():
        needs_cycle = lease_requests.add(LEASE)
    if needs_cycle:
        events.enqueue("jobs.schedule")


def requests() -> int:
    """How many there were so far; a cycle that begins now serves them all."""
    return lease_requests.begin(LEASE)


def is_waiting() -> bool:
    """Whether a request is not served yet: its cycle runs, or its hint was lost."""
    return lease_requests.is_waiting(LEASE)


def complete(served: int) -> int:
    """Records that a cycle was completed which began when there were ``served`` requests; returns how many there are now."""
    return lease_requests.complete(LEASE, served)
