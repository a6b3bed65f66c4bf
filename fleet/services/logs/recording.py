"""Records pods that have ended, in the transaction that writes their end, so that their logs are read even after a crash."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

from fleet.changes import events
from fleet.core.members import pod_details
from fleet.models import Cluster, EndedPod, Pod

ENDED = ("Succeeded", "Failed")
_AT_ONCE = 500
READ = "fleet.archive_logs"
_OWN = frozenset({"id", "cluster", "namespace", "name", "uid", "job_uid", "attempt", "role", "index", "state"})
_COLUMNS = {field.name: field for field in Pod._meta.concrete_fields if field.name not in _OWN}


def record(cluster: Cluster, pods: Iterable[Pod], now: datetime) -> None:
    """Makes the logs of these pods due. A pod that was recorded before stays as it is.

    Not of a cluster that is asked in the name of its users: whom it lets read a log cannot be asked of it later.
    """
    if cluster.impersonation or not settings.CONVOY_LOGS.total_bytes:
        return
    rows = [_row(cluster, pod, now) for pod in pods if pod.uid]
    if rows:
        EndedPod.objects.bulk_create(rows, batch_size=_AT_ONCE, ignore_conflicts=True)
        events.enqueue(READ)


def _row(cluster: Cluster, pod: Pod, now: datetime) -> EndedPod:
    kept = json.dumps({name: getattr(pod, name) for name in _COLUMNS}, cls=DjangoJSONEncoder, separators=(",", ":"))
    return EndedPod(
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
    return Pod(**own, **columns)


def containers_of(ended: EndedPod) -> list[str]:
    """Names of its containers in their order, without init containers."""
    details = pod_details.parse(json.loads(ended.pod).get("details", ""))
    return [container.get("name", "") for container in details.get("containers") or []]
