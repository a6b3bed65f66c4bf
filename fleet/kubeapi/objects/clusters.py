"""Clusters as Kubernetes objects: labels, annotations and taints are people's to write, and deleting one detaches it.

Joining takes credentials, which no object here ever holds: it stays with REST and the command line. A cordon is shown as
the taint it works like, and putting that taint on or taking it off is the cordon. The drain is a taint everywhere.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from fleet.core import fits, tags
from fleet.core.members import health
from fleet.errors import FieldFault, InvalidInput, NotFound, invalid
from fleet.kube.discovery import Served
from fleet.kube.resources import Resource
from fleet.kube.schema import schemas
from fleet.kube.schema.schemas import Schema
from fleet.kube.server.kinds import Object, Write
from fleet.kube.tables import AGE, Column
from fleet.kubeapi.objects.kinds import RowKind, head, stamp
from fleet.models import Cluster, agent_state, credentials_state
from fleet.services.clusters import clusters

CLUSTERS = Resource("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", namespaced=False)
CORDON = "convoy.dev/cordoned"
_HEALTH = (health.NOT_READY_TAINT, health.UNREACHABLE_TAINT)
_JOIN = "joining takes credentials: use `convoy cluster join NAME --kubeconfig FILE`, or POST /api/v1/clusters/"


def _text(message: str) -> Object:
    return {"type": "string", "description": message}


_TAINT: Object = {
    "type": "object",
    "required": ["key", "effect"],
    "properties": {
        "key": _text(f"What is the matter; {CORDON} is the cordon, {tags.DRAIN[0]}:{tags.DRAIN[1]} the drain."),
        "value": _text("More of it."),
        "effect": _text("What it does to jobs that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute."),
        "timeAdded": _text("Since when; the fleet fills it in."),
    },
}
DOCUMENT: Object = {
    "type": "object",
    "description": "A member of the fleet.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "How the fleet sees the cluster; of it, only the taints are written here.",
            "properties": {
                "apiEndpoint": _text("The address of its API server."),
                "syncMode": _text("Who carries jobs there; the fleet does."),
                "provider": _text("Who runs it."),
                "region": _text("The region it is in."),
                "zone": _text("The zone it is in."),
                "taints": {"type": "array", "description": "What keeps jobs away.", "items": _TAINT},
            },
        },
        "status": {
            "type": "object",
            "description": "How it is doing, and which kinds it serves.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}


class Clusters(RowKind):
    served = Served(CLUSTERS, subresources=("proxy",), document=DOCUMENT)
    verbs = ("delete", "get", "list", "patch", "update", "watch")
    remedies: Mapping[str, str] = {
        "create": _JOIN,
        "deletecollection": "clusters leave one by one: name the cluster",
    }
    columns = (
        Column("Version", lambda shown, now: shown.get("status", {}).get("kubernetesVersion", "")),
        Column("Scheduler", lambda shown, now: shown.get("status", {}).get("scheduler") or "Unknown"),
        Column(
            "Reservation",
            lambda shown, now: _reservation(shown),
            description="Whether it can hold capacity, and is not set otherwise",
        ),
        Column("Mode", lambda shown, now: shown.get("spec", {}).get("syncMode", "")),
        Column("Ready", lambda shown, now: _ready(shown)),
        AGE,
        Column("Region", lambda shown, now: shown.get("spec", {}).get("region", ""), wide=True),
        Column("Endpoint", lambda shown, now: shown.get("spec", {}).get("apiEndpoint", ""), wide=True),
    )

    @cached_property
    def schema(self) -> Schema:
        return schemas.of_kind(DOCUMENT)

    def rows(self) -> QuerySet[Any]:
        return Cluster.objects.select_related("credentials", "agent").defer(
            "access", "permissions", "credentials__joined"
        )

    def render(self, row: Cluster) -> Object:
        spec = {
            "apiEndpoint": row.server,
            "syncMode": "Push",
            "provider": row.provider,
            "region": row.region,
            "zone": row.zone,
            "taints": [*row.taints, *([{"key": CORDON, "effect": "NoSchedule"}] if row.cordoned else [])],
        }
        enablements = [
            {
                "groupVersion": version,
                "resources": [{"kind": kind, "name": plural} for kind, plural in resources.items()],
            }
            for version, resources in sorted(row.apis.items())
        ]
        joined = stamp(row.joined_at)
        return {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": head(row, labels=row.labels, annotations=row.annotations, creationTimestamp=joined),
            "spec": {key: value for key, value in spec.items() if value},
            "status": {
                "kubernetesVersion": row.version,
                **_capabilities(row),
                "apiEnablements": enablements,
                "conditions": [_readiness(row), _freshness(row), _dispatch(row), _credentials(row), _agent(row)],
            },
        }

    def create(self, document: Object, write: Write) -> Object:
        raise self.not_allowed("create")

    def update(self, document: Object, write: Write) -> None:
        """Each part through the service of its own; nothing is written of a document that has a fault."""
        row = self._one(document["metadata"]["name"])
        spec = _checked(document, self.render(row)["spec"])
        taints = spec.get("taints") or []
        mine, cordoned = _asked_of_people(taints, row, write)
        by: Any = {"by": write.by, "now": write.now}
        with _under("metadata"):
            clusters.set_labels(row, document["metadata"].get("labels") or {}, **by)
            clusters.set_annotations(row, document["metadata"].get("annotations") or {}, **by)
        clusters.set_taints(row, mine, **by)
        clusters.cordon(row, cordoned, **by)

    def delete(self, name: str, write: Write) -> bool:
        clusters.detach(self._one(name), by=write.by, now=write.now)
        return True

    def _one(self, name: str) -> Cluster:
        row = Cluster.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"Cluster {name} has left the fleet")
        return row


def _checked(document: Object, known: Object) -> Object:
    """The spec, if it is one and says nothing new of what the fleet reads from the cluster itself."""
    spec = document.get("spec")
    spec = {} if spec is None else spec
    if not isinstance(spec, dict):
        raise invalid("spec", "must be an object")
    faults = [
        FieldFault(f"spec.{key}", "is the fleet's own: it comes from the credentials and the cluster")
        for key, value in spec.items()
        if key in DOCUMENT["properties"]["spec"]["properties"] and key != "taints" and value != known.get(key)
    ]
    taints = spec.get("taints") or []
    if not isinstance(taints, list) or not all(isinstance(each, dict) for each in taints):
        faults.append(FieldFault("spec.taints", "must be a list of objects with key and effect"))
    else:
        faults += [FieldFault(f"spec.{field}", message) for field, message in tags.taint_faults(taints)]
    if faults:
        raise InvalidInput("; ".join(f"{each.field}: {each.detail}" for each in faults), tuple(faults))
    return spec


def _asked_of_people(taints: list[Object], row: Cluster, write: Write) -> tuple[list[Object], bool]:
    """Without what the heartbeat keeps, and whether there is a cordon among them."""
    kept = {(each["key"], each["effect"]) for each in row.taints if each["key"] in _HEALTH}
    pairs = {(each["key"], each["effect"]) for each in taints}
    for index, each in enumerate(taints):
        if each["key"] in _HEALTH and (each["key"], each["effect"]) not in kept:
            raise invalid(f"spec.taints[{index}].key", "is kept by the heartbeat")
        if each["key"] == CORDON and each["effect"] != "NoSchedule":
            raise invalid(f"spec.taints[{index}].effect", "must be NoSchedule: a cordon moves no job away")
    write.warnings += [f"the taint {key}:{effect} is kept by the heartbeat and stays" for key, effect in kept - pairs]
    mine = [each for each in taints if each["key"] not in (*_HEALTH, CORDON)]
    return mine, (CORDON, "NoSchedule") in pairs


@contextmanager
def _under(path: str) -> Iterator[None]:
    """Faults named by where they stand in the object."""
    try:
        yield
    except InvalidInput as e:
        faults = tuple(FieldFault(f"{path}.{each.field}", each.detail) for each in e.faults)
        raise InvalidInput(e.message, faults) from e


_TRUTH = {Cluster.State.READY: "True", Cluster.State.NOT_READY: "False"}


def _readiness(row: Cluster) -> Object:
    return {
        "type": "Ready",
        "status": _TRUTH.get(Cluster.State(row.state), "Unknown"),
        "reason": row.state_reason or f"Cluster{row.state}",
        "message": row.state_message,
        "lastTransitionTime": stamp(row.state_since),
    }


def _freshness(row: Cluster) -> Object:
    """Whether nodes, pods and jobs are shown as they are now."""
    return {
        "type": "PictureCurrent",
        "status": "False" if row.stale_since else "True" if row.watched_until else "Unknown",
        "reason": "PictureStale" if row.stale_since else "PictureCurrent" if row.watched_until else "NotWatchedYet",
        "message": row.freshness_message if row.watched_until else "No watcher has shown the cluster yet.",
        "lastTransitionTime": stamp(row.stale_since or row.watched_since or row.joined_at),
    }


def _dispatch(row: Cluster) -> Object:
    """Whether jobs are sent there, or only probes because it leaves them unanswered."""
    is_open = row.circuit_opened_at is not None
    return {
        "type": "DispatchAnswered",
        "status": "False" if is_open else "True",
        "reason": "CircuitOpen" if is_open else "CircuitClosed",
        "message": row.circuit_message,
        "lastTransitionTime": stamp(row.circuit_opened_at or row.joined_at),
    }


def _credentials(row: Cluster) -> Object:
    """Whether the fleet uses a token there that the member issued for a while, or what the member was joined with."""
    state = credentials_state(row)
    return {
        "type": "ShortLivedCredentials",
        "status": "True" if state.short_lived else "False",
        "reason": state.reason,
        "message": state.message,
        "lastTransitionTime": stamp(state.since),
    }


def _agent(row: Cluster) -> Object:
    """Whether jobs of policies with Fence are stopped there when the fleet is silent."""
    state = agent_state(row)
    return {
        "type": "FencingAgent",
        "status": "True" if state.answers else "False",
        "reason": state.reason,
        "message": state.message,
        "lastTransitionTime": stamp(state.seen_at or row.joined_at),
    }


def _capabilities(row: Cluster) -> Object:
    offer = row.offer
    off = f"its label {fits.FIT} is {row.labels[fits.FIT]}" if fits.is_switched_off(row.labels) else ""
    why = f"it {offer.refusal}" if offer.refusal else off
    can = {"enabled": False, "reason": why} if why else {"enabled": True}
    return {"scheduler": offer.scheduler, "capabilities": {"reservation": can}}


def _reservation(shown: Object) -> str:
    can = shown.get("status", {}).get("capabilities", {}).get("reservation", {})
    return "Enabled" if can.get("enabled") else "Disabled"


def _ready(shown: Object) -> str:
    return next((str(each["status"]) for each in shown.get("status", {}).get("conditions", [])), "Unknown")
