"""A job moved to another queue in a person's name: which queue they mean, and whether it is theirs to move it there."""

from datetime import datetime

from fleet.errors import invalid
from jobs.models import Job
from jobs.services.scheduling.demand import priorities, queueing
from quotas import queries
from quotas.services import scopes


def move(job: Job, queue: str, *, by: str, now: datetime) -> Job:
    """``queue`` is the name of a queue or the path of its node."""
    tree = queries.tree()
    path = queries.queues().filter(name=queue).values_list("path", flat=True).first() or queue
    leaf = tree.by_path.get(path) if tree else None
    if tree is None or leaf is None or path in tree.children:
        raise invalid("queue", f"{queue} is no queue of a leaf of the quota tree")
    scopes.require_into(by, leaf, job.namespace)
    priorities.require_below_ceiling(job, leaf, job.priority, by)
    return queueing.move(job, path, by=by, now=now)
