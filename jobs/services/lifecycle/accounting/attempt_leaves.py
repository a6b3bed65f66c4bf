"""Keeps with the attempts of a job the quota leaf that they ran in, when the job gets another leaf.

What they used is their former queue's for ever. An attempt that goes on is the new queue's from its placement on.
"""

from collections.abc import Collection

from jobs.models import Attempt


def keep(jobs: Collection[int], leaf: str) -> None:
    """Called in the transaction that gives these jobs another leaf than this one."""
    if leaf:
        Attempt.objects.filter(job__in=jobs, ended_at__isnull=False, leaf="").update(leaf=leaf)
