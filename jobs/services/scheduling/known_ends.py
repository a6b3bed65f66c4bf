"""When jobs that hold quota have ended at the latest: by their deadline, declared run time, and the max-runtime of their queue.

Read only when a window of the quota tree lies ahead (`jobs.core.admission.window_guard`).
"""

from collections.abc import Mapping
from datetime import datetime

from jobs import snapshot
from jobs.core.admission.window_guard import known_end
from jobs.models import Attempt


def load(now: datetime) -> Mapping[int, datetime]:
    """By job, of those of which it is known. A job that does not run yet counts as if it started now."""
    tree, _ = snapshot.tree_in_force()
    limits = {leaf.path: leaf.attributes.time.max_runtime for leaf in (tree.leaves if tree else ())}
    jobs = snapshot.charged_jobs()
    running = Attempt.objects.filter(ended_at=None, started_at__isnull=False, job__in=jobs.values("pk"))
    started = {pk: at for pk, at in running.order_by("number").values_list("job", "started_at") if at}
    ends = {}
    for pk, leaf, roles, deadline in jobs.values_list("pk", "leaf", "roles", "deadline_at"):
        end = known_end(started.get(pk, now), snapshot.declared_runtime(roles), deadline, limits.get(leaf))
        if end is not None and end > now:  # what has overrun its time may go on
            ends[pk] = end
    return ends
