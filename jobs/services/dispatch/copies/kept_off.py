"""An exclusion reaches copies that are in their member already, so that a pod which is replaced there does not meet the node.

A copy is sent with the nodes to keep off (`Work.avoided_nodes`). When an exclusion begins or ends afterwards, copies whose
operator makes pods of the present template (`Kind.follows_templates`) are ordered to follow; pods that run are not touched. The
others keep the templates that they were sent with, and are helped by a taint alone.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef

from fleet.db import isolation
from fleet.member.client import MemberClient
from fleet.models import NodeExclusion
from fleet.services.clusters import node_exclusions
from jobs.kinds import registry
from jobs.kinds.base import Manifest
from jobs.models import Job, Work
from jobs.services.dispatch.copies import overrides
from jobs.services.dispatch.members import member_objects
from jobs.services.scheduling.decisions import excluded_nodes, lease

_State = Work.State
_MOST = 500
"""Works that one statement changes."""


def order(now: datetime) -> None:
    """Orders that copies follow the exclusions that have begun or ended. Whatever dies here is done by the next sweep."""
    by_cluster: dict[int, list[NodeExclusion]] = defaultdict(list)
    for exclusion in node_exclusions.unordered():
        by_cluster[exclusion.cluster_id].append(exclusion)
    if not by_cluster:
        return
    # A plan that did not see them yet may be about to write a work; later plans see them.
    lease.wait_for_writers()
    isolation.each("kept_off.order", sorted(by_cluster), lambda pk: _order(pk, by_cluster[pk], now), now)


@transaction.atomic
def _order(cluster: int, changed: Sequence[NodeExclusion], now: datetime) -> None:
    rows = Work.objects.filter(cluster=cluster, state__in=[_State.PENDING, _State.SENDING, _State.APPLIED])
    of_jobs = {exclusion.job_uid for exclusion in changed if exclusion.job_uid}
    if all(exclusion.job_uid for exclusion in changed):
        rows = rows.filter(job_uid__in=of_jobs)
    # What is over makes no pods, however many such copies are kept.
    rows = rows.filter(~Exists(Job.objects.filter(uid=OuterRef("job_uid"), state__in=Job.FINISHED)))
    rows = rows.only("job_uid", "state", "avoided_nodes", "api_version", "kind")
    sent = list(rows.order_by("pk").select_for_update(no_key=True, of=("self",)))
    excluded = excluded_nodes.load({work.job_uid for work in sent})
    late: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for work in sent:
        hostnames = excluded.hostnames(cluster, work.job_uid)
        if hostnames != work.avoided_nodes and (work.state == _State.PENDING or _follows(work)):
            late[tuple(hostnames or ())].append(work.pk)
    for avoided, pks in late.items():
        fields = {"avoided_nodes": list(avoided) or None, "resize_wanted": F("resize_wanted") + 1}
        for start in range(0, len(pks), _MOST):
            Work.objects.filter(pk__in=pks[start : start + _MOST]).update(**fields, due_at=now, tries=0)
    for exclusion in changed:
        node_exclusions.mark_ordered(exclusion)


def _follows(work: Work) -> bool:
    return registry.kind_of(work.api_version, work.kind).follows_templates


def follow(client: MemberClient, work: Work, job: Job) -> None:
    """Keeps what replaces pods of the copy off the excluded nodes of the work, and off no others."""
    kind = registry.kind_of(work.api_version, work.kind)
    if not kind.follows_templates:
        return
    written, _ = overrides.manifest(job, kind, work.cluster)
    uid, hostnames = str(work.job_uid), work.avoided_nodes or []

    def edit(existing: Manifest) -> None:
        kind.keep_off_nodes_instead(existing, written, hostnames)

    member_objects.edit(client, kind.resource, work.namespace, work.name, uid, work.attempt, edit)
