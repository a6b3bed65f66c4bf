"""Pods of fleet jobs, from all members. They belong to their jobs: nothing here writes one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from fleet.changes import journal
from fleet.changes.journal import Entry
from fleet.core.members import hub_names
from fleet.core.members.pods import pod_details, pod_reasons
from fleet.kube.discovery import Served
from fleet.kube.requests.status import KubeError
from fleet.kube.resources import PODS
from fleet.kube.server.kinds import LABEL, Exact, Key, Object, method_not_allowed
from fleet.kube.tables import AGE, Column, at, init_word
from fleet.kubeapi.objects import members
from fleet.kubeapi.objects.kinds import Change, stamp
from fleet.kubeapi.objects.members import CLUSTER_COLUMN, MemberKind, is_stale, silence_message
from fleet.models import EndedPod, Pod
from fleet.services.logs import archive
from fleet.services.members import member_objects

_ENDED_AT = "convoy.dev/ended-at"
"""On a pod that is gone from its cluster, and is shown as it was last."""
_PHASE, _NODE = "status.phase", "spec.nodeName"
_JOBS = "pods belong to their job and are read only at the fleet"
_GATED = "SchedulingGated"
_IN_CLUSTER = "`kubectl amc delete pod NAME -m CLUSTER`"


class Pods(MemberKind):
    served = Served(PODS, ("po",), ("all",), subresources=("log", "exec", "attach", "portforward"))
    verbs = ("get", "list", "watch")
    remedies: Mapping[str, str] = {
        "create": f"{_JOBS}: submit a job, such as a Job of batch/v1",
        "delete": f"{_JOBS}: delete or suspend the job; in its cluster a pod is deleted by {_IN_CLUSTER}",
        "deletecollection": f"{_JOBS}: delete or suspend their job",
        "patch": f"{_JOBS}: change the job",
        "update": f"{_JOBS}: change the job",
    }
    subresource_remedies: Mapping[str, str] = {
        "ephemeralcontainers": f"{_JOBS}: a debug container is added by the kubectl of its cluster or its /proxy",
        "eviction": f"{_JOBS}: suspend the job, or drain its node (`convoy cluster drain CLUSTER NODE`) or cluster",
        "resize": f"{_JOBS}: change the job",
    }
    field_labels = frozenset({_PHASE, _NODE, "spec.restartPolicy", "status.podIP"})
    order = ("namespace", "name", "cluster_id")
    columns = (
        Column("Ready", lambda shown, now: _ready(shown)),
        Column("Status", lambda shown, now: _status_word(shown)),
        Column("Restarts", lambda shown, now: sum(each["restartCount"] for each in _statuses(shown)), "integer"),
        AGE,
        CLUSTER_COLUMN,
        Column("IP", lambda shown, now: at(".status.podIP")(shown) or "<none>", wide=True),
        Column("Node", lambda shown, now: at(".spec.nodeName")(shown) or "<none>", wide=True),
    )

    def not_served(self, subresource: str) -> KubeError:
        remedy = self.subresource_remedies.get(subresource)
        return method_not_allowed(remedy) if remedy else super().not_served(subresource)

    def rows(self) -> QuerySet[Any]:
        return Pod.objects.all()

    def inside(self, namespaces: frozenset[str] | None) -> QuerySet[Any]:
        return self.rows() if namespaces is None else self.rows().filter(namespace__in=namespaces)

    def select(self, rows: QuerySet[Any], exact: Exact) -> QuerySet[Any]:
        rows = super().select(rows, exact)
        rows = rows.filter(phase=exact[_PHASE]) if _PHASE in exact else rows
        if _NODE in exact:
            rows = rows.filter(members.named(exact[_NODE], "node") if exact[_NODE] else Q(node=""))
        for field, value in exact.items():
            key = field.removeprefix(LABEL)
            if key not in (field, members.CLUSTER):
                rows = rows.filter(details__contains=pod_details.fragment_of(key, value))
        return rows

    def position(self, key: Key) -> Sequence[object]:
        namespace, hub = key
        name, cluster = hub_names.split(hub)
        if kept := hub_names.kept_of(hub):
            pod = member_objects.pod_of(namespace, hub)
            name = pod.name if pod else kept
        return namespace, name, members.cluster_id(cluster)

    def get(self, namespace: str, name: str) -> Object | None:
        """Also by its name in its cluster, where only one has it; and one that has ended and is gone, while its log is kept."""
        version = journal.head()
        pod = member_objects.pod_meant(namespace, name)
        if pod is not None:
            return members.at_version(self.render(pod), version)
        ended = archive.pod_meant(namespace, name)
        return None if ended is None else members.at_version(self._render_ended(ended), version)

    def _render_ended(self, ended: EndedPod) -> Object:
        shown = self.render(archive.as_row(ended))
        shown["metadata"]["annotations"][_ENDED_AT] = stamp(ended.ended_at)
        return shown

    def of_uids(self, uids: Iterable[str]) -> dict[str, Object]:
        pods = member_objects.with_clusters(self.rows().filter(uid__in=list(uids)), {})
        return {pod.uid: self.render(pod) for pod in pods}

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        """A pod that is newer than a change of its cluster is not sent with it: its first event is that of its creation."""
        changes = super().changes_in(entries)
        more = self.of_changed_clusters(entries, but={change.uid for change in changes})
        newer = journal.added_after(entries[-1].version, {change.uid for change in more}) if more else set()
        changes += [change for change in more if change.uid not in newer]
        return sorted(changes, key=lambda change: change.version)

    def render(self, row: Pod) -> Object:
        details = pod_details.parse(row.details)
        containers = details.get("containers") or [{}] * row.containers
        metadata = {
            **members.head_of(row, row.uid, details.get("labels") or {}),
            "namespace": row.namespace,
            "creationTimestamp": stamp(row.created_at),
        }
        return {
            "apiVersion": "v1",
            "kind": PODS.kind,
            "metadata": metadata,
            "spec": _spec(row, containers, details),
            "status": _status(row, containers, details),
        }


def _spec(row: Pod, containers: list[Object], details: Object) -> Object:
    spec = {
        "nodeName": hub_names.hub_name(row.node, row.cluster.name) if row.node else None,
        "restartPolicy": details.get("restartPolicy"),
        "initContainers": [_container(each) for each in details.get("initContainers") or []],
    }
    # Every API server fills securityContext in; `kubectl debug` reads it without looking whether it is there.
    return {"containers": [_container(each) for each in containers], **_known(spec), "securityContext": {}}


def _container(kept: Object) -> Object:
    return {
        "name": kept.get("name", ""),
        **_known({part: kept.get(part) for part in ("image", "resources", "restartPolicy")}),
    }


def _status(row: Pod, containers: list[Object], details: Object) -> Object:
    own = _known({"reason": row.reason, "message": row.message}) if _is_own_reason(row, containers) else {}
    status = {
        **own,
        "startTime": stamp(row.started_at) if row.started_at else None,
        "hostIP": details.get("hostIP"),
        "podIP": details.get("podIP"),
        "podIPs": [{"ip": details["podIP"]}] if details.get("podIP") else None,
    }
    if row.node:
        begun = [each for each in details.get("initContainers") or [] if each.get("state")]
        status["initContainerStatuses"] = [_container_status(row, each) for each in begun]
        status["containerStatuses"] = [_container_status(row, each) for each in containers]
    return {"phase": row.phase, "conditions": list(_conditions(row)), **_known(status)}


def _is_own_reason(row: Pod, containers: list[Object]) -> bool:
    """Whether the reason is one of the pod as a whole; else a container or the condition PodScheduled has it."""
    if pod_reasons.is_of_init_containers(row.reason):
        return False
    states = (state for each in containers for state in (each.get("state") or {}).values())
    return bool(row.node) and all(state.get("reason") != row.reason for state in states)


def _container_status(row: Pod, kept: Object) -> Object:
    state = kept.get("state") or {}
    if not state and row.phase == "Pending":
        state = {"waiting": {"reason": "ContainerCreating"}}
    return {
        "name": kept.get("name", ""),
        "image": kept.get("image", ""),
        "imageID": "",
        "ready": bool(kept.get("ready")),
        "started": "running" in state,
        "restartCount": kept.get("restartCount", 0),
        "state": _state(state),
        "lastState": _state(kept.get("lastState") or {}),
    }


def _state(state: Object) -> Object:
    """Typed clients insist on the exit code of a container that has ended."""
    return {"terminated": {"exitCode": 0, **state["terminated"]}} if "terminated" in state else state


def _conditions(row: Pod) -> Iterator[Object]:
    unscheduled = {"reason": row.reason, "message": row.message} if not row.node else {}
    yield _condition("PodScheduled", bool(row.node), row.created_at, unscheduled)
    is_ready = row.phase == "Running" and row.containers > 0 and row.ready_containers >= row.containers
    yield _condition("ContainersReady", is_ready, row.running_since or row.created_at, {})
    if since := members.silent_since(row.cluster):
        why = {"reason": "ClusterSilent", "message": silence_message(row.cluster)}
        yield {**_condition("Ready", False, since, why), "status": "Unknown"}
    else:
        yield _condition("Ready", is_ready, row.running_since or row.created_at, {})


def _condition(kind: str, holds: bool, since: datetime, why: Mapping[str, str]) -> Object:
    return {"type": kind, "status": str(holds), "lastTransitionTime": stamp(since), **_known(why)}


def _known(parts: Mapping[str, Any]) -> Object:
    return {key: value for key, value in parts.items() if value}


def _statuses(shown: Object) -> list[Object]:
    statuses: list[Object] = (shown.get("status") or {}).get("containerStatuses") or []
    return statuses


def _ready(shown: Object) -> str:
    containers = (shown.get("spec") or {}).get("containers") or []
    return f"{sum(each['ready'] for each in _statuses(shown))}/{len(containers)}"


def _gated(status: Object) -> str:
    reasons = [str(each.get("reason") or "") for each in status.get("conditions") or []]
    return _GATED if _GATED in reasons else ""


def _status_word(shown: Object) -> str:
    """As kubectl words it: the reason of a container that waits or has ended, else the pod's, else its phase."""
    status = shown.get("status") or {}
    word = status.get("reason") or _gated(status) or status.get("phase") or "Unknown"
    for each in _statuses(shown):
        state = each["state"].get("waiting") or each["state"].get("terminated") or {}
        word = state.get("reason") or word
    word = init_word(shown) or word
    return f"{word} (stale)" if is_stale(shown) else word
