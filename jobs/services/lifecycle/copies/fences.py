"""Which copies the agent in their member stops when it is cut off, and from when on they run no more; reads rows only.

A copy is fenced if it was sent with the label that the agent goes by, while an agent was known to live there. That is kept with
the work: the policy may change while the copy runs.
"""

from collections.abc import Collection
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.db.models import Q

from fleet.core.members.fence import Renewals
from fleet.models import Cluster
from fleet.services.clusters import agents
from jobs.core.failover.lifecycle import grace_s
from jobs.core.policies.propagation import PolicySpec
from jobs.core.policies.unreachable import Unreachable
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.lifecycle.works import IN_MEMBER
from jobs.snapshot import spec_of


class Fence:
    """The fence of one cluster, read once for all of its jobs or for ``uids``."""

    def __init__(self, cluster: Cluster, uids: Collection[UUID] | None = None) -> None:
        self._cluster, self._uids = cluster, uids

    def may_have_copy(self, job: Job) -> bool:
        """Whether a copy of the job was sent to the cluster, or a worker has claimed to send one."""
        return job.uid in self._copies

    def over_at(self, job: Job, spec: PolicySpec) -> datetime | None:
        """From when on no copy of the job runs in the cluster if it does not answer. None: one may run on."""
        if spec.unreachable is not Unreachable.FENCE or self._copies.get(job.uid) is not True:
            return None
        kind = registry.kind_of(job.api_version, job.kind)
        return (
            self._renewals.stopped_by(grace_s(job.manifest, kind.templates(job.manifest))) if self._renewals else None
        )

    @cached_property
    def _copies(self) -> dict[UUID, bool]:
        """The jobs that may have copies in the cluster, and whether all of these are fenced."""
        may_be_sent = Q(state__in=IN_MEMBER) | Q(state=Work.State.PENDING) & ~Q(claim="")
        rows = Work.objects.filter(may_be_sent, cluster_id=self._cluster.pk)
        rows = rows if self._uids is None else rows.filter(job_uid__in=self._uids)
        fenced: dict[UUID, bool] = {}
        for uid, is_fenced in rows.values_list("job_uid", "fenced"):
            fenced[uid] = fenced.get(uid, True) and is_fenced
        return fenced

    @cached_property
    def _renewals(self) -> Renewals | None:
        return agents.of(self._cluster)


def may_run(job: Job, copy: Work, now: datetime) -> bool:
    """Whether an older copy in a cluster that does not answer keeps the job from being sent elsewhere, by its policy."""
    spec = spec_of(job)
    if spec.unreachable is Unreachable.REPLACE:
        return False
    over = Fence(copy.cluster, [job.uid]).over_at(job, spec)
    return over is None or over > now


def holds_back(job: Job, cluster: Cluster) -> bool:
    """Whether nothing is to be sent to the cluster, because it does not answer and the job would have to wait for its copy."""
    return cluster.state == Cluster.State.UNKNOWN and spec_of(job).unreachable is not Unreachable.REPLACE


def is_wanted(job: Job, cluster: Cluster, now: datetime) -> bool:
    """Whether a copy that is sent to the cluster now is to be fenced there."""
    if spec_of(job).unreachable is not Unreachable.FENCE:
        return False
    renewals = agents.of(cluster)
    return renewals is not None and renewals.has_agent(now)
