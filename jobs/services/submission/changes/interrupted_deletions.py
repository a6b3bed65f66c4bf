"""Goes on with deletions of namespaces whose process died, or missed what was being created when they began.

Who may delete a namespace, and with what in it, was decided when it was marked; here nothing is asked again. What only a fleet
admin may delete is left: the namespace then stays, with that in it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from fleet.db import isolation, pace
from fleet.errors import Conflict
from fleet.services.authorization import namespaces
from jobs import snapshot_topology
from jobs.models import Dependent, Job, Policy
from jobs.services.submission.changes import actions

AFTER = timedelta(minutes=5)
"""A deletion that is younger may still be under way in the process that began it."""
BATCH = 200
"""Objects deleted by one pass: the next one is seconds away, and dispatch and scheduling are in between."""
PASS_S = 2.0
"""After which a pass begins with no further namespace, and one namespace ends, so that the sweep comes to its other steps."""


def resume(now: datetime) -> None:
    for name in pace.within(PASS_S, namespaces.terminating_for(AFTER, now)):
        remaining = list(islice(_remaining(name), BATCH))
        in_time = pace.within(PASS_S, remaining)
        isolation.each("interrupted_deletions.objects", in_time, partial(_delete, now=now), now)
        if not remaining and not Job.objects.filter(namespace=name).exists():
            isolation.run("interrupted_deletions.end", [name], partial(namespaces.remove, name, now=now))


def _remaining(namespace: str) -> Iterator[Job | Policy | Dependent]:
    """Jobs first, which refer to the others."""
    yield from Job.objects.filter(namespace=namespace, deleting_at=None).order_by("pk")[:BATCH]
    yield from Policy.objects.filter(namespace=namespace).order_by("pk")[:BATCH]
    for row in Dependent.objects.filter(namespace=namespace).order_by("pk"):
        if not snapshot_topology.concerns(row.kind, row.namespace, row.name):
            yield row


def _delete(row: Job | Policy | Dependent, now: datetime) -> None:
    by = f"the deletion of namespace {row.namespace}"
    if isinstance(row, Policy):
        actions.delete_policy(row, by=by, now=now)
    elif isinstance(row, Dependent):
        actions.delete_dependent(row, by=by, now=now)
    else:
        _delete_job(row, by, now)


def _delete_job(job: Job, by: str, now: datetime) -> None:
    try:
        actions.delete(job, by=by, now=now)
    except Conflict:
        return
