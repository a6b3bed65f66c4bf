"""Requests for a scheduling cycle: each change that may let a job start adds one, and cycles run until all are served.

Requests are counted in the database, so that one made while a cycle runs is not lost.
"""

from django.db import connection, transaction
from django.db.models import F

from fleet import events
from fleet.models import LeaseRequests

LEASE = "scheduler"


def request() -> None:
    """Asks for a cycle once the transaction commits."""
    if all(hook[1] is not _want for hook in connection.run_on_commit):
        transaction.on_commit(_want, robust=True)


def _want() -> None:
    if not LeaseRequests.objects.filter(lease=LEASE).update(count=F("count") + 1):
        LeaseRequests.objects.get_or_create(lease=LEASE, defaults={"count": 1})
    events.enqueue("jobs.schedule")


def requests() -> int:
    """How many there were so far."""
    return LeaseRequests.objects.filter(lease=LEASE).values_list("count", flat=True).first() or 0
