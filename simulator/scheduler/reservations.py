"""Koordinator's Reservations: capacity of a node reserved for a future pod, used by it, or released when it expires.

The capacity is held in the scheduler's ledger under the uid of the reservation, like that of a bound pod.
"""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fleet.kube.requests import selectors
from fleet.kube.resources import PODS, RESERVATIONS
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberExists
from simulator.machinery.clock import parse_stamp, stamp
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import key_of, labels_of, name_of, uid_of
from simulator.scheduler.fit import PodRequest, request_of

RETRY_S = 0.3
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Available:
    """A reservation that waits for its pod."""

    key: str
    uid: str
    node: str
    selectors: tuple[Mapping[str, object], ...]


class Ledger(Protocol):
    """The capacity held on the scheduler's nodes."""

    def reserve(self, uid: str, request: PodRequest, node: str) -> str:
        """Holds capacity for ``uid`` on that node, or on the best one. Returns the node, or an empty string."""

    def give_back(self, uid: str) -> None: ...

    def hand_over(self, uid: str, heir: str) -> None: ...

    def wake(self) -> None: ...


def show_scheduler(client: MemberClient, image: str, now: float) -> None:
    """Creates a pod of a scheduler, by which Convoy recognises it. Its work is done by the simulated scheduler."""
    name = image.partition(":")[0]
    labels = {"koord-app": name} if name == "koord-scheduler" else {"component": name}
    body = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"nodeName": "control-plane", "containers": [{"name": name, "image": f"example.com/{image}"}]},
    }
    with contextlib.suppress(MemberExists):
        client.create(PODS.path("kube-system"), body)
        status = {"phase": "Running", "startTime": stamp(now)}
        client.merge_patch(PODS.path("kube-system", name, "status"), {"status": status})


class Reservations(Controller):
    name = "reservations"

    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        super().__init__(cluster)
        self._ledger = ledger
        self._available: dict[str, Available] = {}
        self._used_by: dict[str, str] = {}
        self._lock = threading.Lock()
        self._reservations = cluster.informer(RESERVATIONS)
        self._reservations.listen(self._on_change)

    def take(self, pod: Object) -> str:
        """Gives the pod a matching reservation and returns its node. Empty if there is none."""
        labels = labels_of(pod)
        with self._lock:
            for key, reservation in sorted(self._available.items()):
                if any(selectors.matches_label_selector(selector, labels) for selector in reservation.selectors):
                    del self._available[key]
                    self._used_by[reservation.uid] = key_of(pod)
                    self._ledger.hand_over(reservation.uid, uid_of(pod))
                    self.queue.add(key)
                    return reservation.node
        return ""

    def _on_change(self, kind: str, obj: Object) -> None:
        if kind == "DELETED":
            self._forget(key_of(obj), uid_of(obj))
        else:
            self.queue.add(key_of(obj))

    def _forget(self, key: str, uid: str) -> None:
        with self._lock:
            reservation = self._available.get(key)
            if reservation is not None and reservation.uid == uid:
                del self._available[key]
            self._used_by.pop(uid, None)
        self._ledger.give_back(uid)

    def reconcile(self, key: str) -> float | None:
        obj = self._reservations.get(key)
        if obj is None:
            return None
        phase = (obj.get("status") or {}).get("phase") or "Pending"
        if phase in ("Succeeded", "Failed"):
            self._forget(key, uid_of(obj))
            return None
        if pod := self._used_by.get(uid_of(obj)):
            self._write(obj, {"phase": "Succeeded", "currentOwners": [{"name": pod.partition("/")[2]}]})
            return None
        remaining_s = self._remaining_s(obj)
        if remaining_s <= 0:
            self._forget(key, uid_of(obj))
            self._write(obj, {"phase": "Failed", "conditions": [{"type": "Ready", "reason": "Expired"}]})
            return None
        return self._hold(obj, phase, remaining_s)

    def _hold(self, obj: Object, phase: str, remaining_s: float) -> float:
        key, uid = key_of(obj), uid_of(obj)
        if key in self._available:
            return remaining_s
        node = self._ledger.reserve(uid, _template_request(obj), (obj.get("status") or {}).get("nodeName", ""))
        if not node:
            return min(RETRY_S, remaining_s)
        if phase != "Available":
            self._write(obj, {"phase": "Available", "nodeName": node})
        owners = [owner["labelSelector"] for owner in obj["spec"].get("owners") or [] if owner.get("labelSelector")]
        with self._lock:
            self._available[key] = Available(key, uid, node, tuple(owners))
        self._ledger.wake()
        return remaining_s

    def _remaining_s(self, obj: Object) -> float:
        ttl = str(obj["spec"].get("ttl") or "24h")
        life = float(ttl[:-1]) * UNITS[ttl[-1]]
        born = parse_stamp(obj["metadata"]["creationTimestamp"])
        return born + self.clock.real(life) - self.clock.now()

    def _write(self, obj: Object, status: Object) -> None:
        body = {"metadata": {"uid": uid_of(obj)}, "status": status}
        self._reservations.learn(
            self.client.merge_patch(RESERVATIONS.path(name=name_of(obj), subresource="status"), body)
        )


def _template_request(obj: Object) -> PodRequest:
    return request_of(obj["spec"]["template"])
