"""Records pods that have ended, in the transaction that writes their end, so that their logs are read even after a crash.

Pods that Convoy is about to stop are recorded before: a member deletes them, and their logs, soon after their end.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Exists, OuterRef, QuerySet

from fleet.changes import events
from fleet.core.members.pods import pod_details
from fleet.models import ArchivedLog, Cluster, EndedPod, Pod

ENDED = ("Succeeded", "Failed")
STOPPED = "Stopped"
_AT_ONCE = 500
READ = "fleet.archive_logs"
_OWN = frozenset({"id", "cluster", "namespace", "name", "uid", "job_uid", "attempt", "role", "index", "state"})
_COLUMNS = {field.name: field for field in Pod._meta.concrete_fields if field.name not in _OWN}


def record(cluster: Cluster, pods: Iterable[Pod], now: datetime) -> None:
    """Makes the logs of these pods due. A pod whose end was recorded before stays as it is."""
    rows = [_row(cluster, pod, now) for pod in pods if pod.uid] if _may_keep(cluster) else []
    if rows:
        _end_stopping(cluster, rows)
        EndedPod.objects.bulk_create(rows, batch_size=_AT_ONCE, ignore_conflicts=True)
        events.enqueue(READ)


def record_stopping(cluster: Cluster, pods: Iterable[Pod], now: datetime) -> Sequence[EndedPod]:
    """Makes the logs of pods that are about to be stopped due at once. Returns those that were not recorded before."""
    rows = [_row(cluster, pod, now, has_ended=False) for pod in pods if pod.uid] if _may_keep(cluster) else []
    if not rows:
        return []
    EndedPod.objects.bulk_create(rows, batch_size=_AT_ONCE, ignore_conflicts=True)
    events.enqueue(READ)
    return list(EndedPod.objects.filter(ref__in=[row.ref for row in rows]))


def _may_keep(cluster: Cluster) -> bool:
    """Not of a cluster that is asked in the name of its users: whom it lets read a log cannot be asked of it later."""
    return bool(settings.CONVOY_LOGS.total_bytes) and not cluster.impersonation


def _end_stopping(cluster: Cluster, rows: Sequence[EndedPod]) -> None:
    """Pods that were recorded when they were about to be stopped: their logs are read again, now to their end."""
    ended = {row.uid: row for row in rows}
    stopping = EndedPod.objects.filter(cluster_uid=cluster.uid, uid__in=ended, has_ended=False)
    for pk, uid in list(stopping.values_list("pk", "uid")):
        row = ended[uid]
        values = {"pod": row.pod, "ended_at": row.ended_at, "due_at": row.due_at, "state": EndedPod.State.DUE}
        EndedPod.objects.filter(pk=pk).update(has_ended=True, tries=0, **values)


def settle_unread(pods: QuerySet[EndedPod], message: str) -> None:
    """Gives these pods up, with the message; of those whose logs were read before their end, these stay kept."""
    due = pods.filter(state=EndedPod.State.DUE)
    logs = ArchivedLog.objects.filter(pod=OuterRef("pk"))
    due.filter(Exists(logs)).update(state=EndedPod.State.KEPT, due_at=None)
    due.update(state=EndedPod.State.LOST, message=message[:300], due_at=None)


def _row(cluster: Cluster, pod: Pod, now: datetime, *, has_ended: bool = True) -> EndedPod:
    kept = json.dumps({name: getattr(pod, name) for name in _COLUMNS}, cls=DjangoJSONEncoder, separators=(",", ":"))
    return EndedPod(
        has_ended=has_ended,
        cluster=cluster,
        cluster_name=cluster.name,
        cluster_uid=cluster.uid,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        job_uid=pod.job_uid,
        attempt=pod.attempt,
        role=pod.role,
        index=pod.index,
        pod=kept,
        ended_at=now,
        due_at=now,
        stored_bytes=len(kept),
    )


def pod_of(ended: EndedPod) -> Pod:
    """The pod's row as it was last; not in the database."""
    values: dict[str, Any] = json.loads(ended.pod)
    own = {name: getattr(ended, name) for name in ("namespace", "name", "uid", "job_uid", "attempt", "role", "index")}
    columns = {name: _COLUMNS[name].to_python(value) for name, value in values.items() if name in _COLUMNS}
    if not ended.has_ended:
        # Its row is gone before its end was seen: it did not outlive being stopped.
        columns |= {"phase": "Failed", "reason": STOPPED}
    return Pod(**own, **columns)


def containers_of(ended: EndedPod) -> list[str]:
    """Names of its containers in their order, without init containers."""
    details = pod_details.parse(json.loads(ended.pod).get("details", ""))
    return [container.get("name", "") for container in details.get("containers") or []]
