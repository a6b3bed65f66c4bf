"""Handlers of the signals of `fleet` and `quotas`: they enqueue work, and veto the detachment of a cluster that runs jobs."""

from django.db.models import Q

from fleet.changes import events
from fleet.changes.signals import capacity_freed, cluster_changed, detaching
from fleet.db import prepared
from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.models import Binding, Job, Work
from jobs.services.lifecycle import cycle_requests
from jobs.services.lifecycle.locks import lock_jobs
from jobs.services.scheduling.demand import entitlements
from quotas.core.trees.tree import Tree
from quotas.signals import queue_changed, tree_changed, tree_changing

_ANY_WAITING = prepared.Rows(
    lambda _: Job.objects.filter(state__in=Job.WAITING, suspended=False).order_by().values_list("pk")[:1]
)


def on_cluster_changed(cluster_id: int, **_: object) -> None:
    events.enqueue("jobs.cluster_changed", cluster_id)


def on_capacity_freed(cluster_id: int, **_: object) -> None:
    if _ANY_WAITING.values():
        cycle_requests.request()


def on_detaching(cluster: Cluster, **_: object) -> str:
    """Their rows, and those of their works, change with the cluster's: the jobs are locked first, as everywhere."""
    theirs = Q(cluster=cluster) | Q(uid__in=Work.objects.filter(cluster=cluster).values("job_uid"))
    lock_jobs(Job.objects.filter(theirs | Q(pk__in=Binding.objects.filter(cluster=cluster).values("job"))))
    count = Job.objects.filter(cluster=cluster, state__in=Job.ON_MEMBER).count()
    return f"{count} jobs run there: drain or delete them first, or force it to move them" if count else ""


def on_tree_changing(before: Tree | None, after: Tree | None, by: str, **_: object) -> str:
    return entitlements.tree_changing(before, after, access.sees_named(by))


def on_quota_changed(**_: object) -> None:
    cycle_requests.request()


def connect() -> None:
    tree_changing.connect(on_tree_changing, dispatch_uid="jobs")
    tree_changed.connect(on_quota_changed, dispatch_uid="jobs")
    queue_changed.connect(on_quota_changed, dispatch_uid="jobs")
    cluster_changed.connect(on_cluster_changed, dispatch_uid="jobs")
    capacity_freed.connect(on_capacity_freed, dispatch_uid="jobs")
    detaching.connect(on_detaching, dispatch_uid="jobs")
