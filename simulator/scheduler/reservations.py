"""Koordinator's reservations: room on a node kept for a pod that is to come, taken by it, or given back when none comes.

The scheduler's ledger is the only one: a reservation holds there under its own uid, as a bound pod does.
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
from simulator.scheduler.fit import Ask, ask_of

RETRY_S = 0.3
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Kept:
    """Room that waits for its pod."""

    key: str
    uid: str
    node: str
    selectors: tuple[Mapping[str, object], ...]


class Ledger(Protocol):
    """What the scheduler keeps of its nodes."""

    def reserve(self, uid: str, ask: Ask, node: str) -> str:
        """Holds room for ``uid`` on that node, or on the best one; says where, empty: nowhere."""

    def give_back(self, uid: str) -> None: ...

    def hand_over(self, uid: str, heir: str) -> None: ...

    def wake(self) -> None: ...


def show_scheduler(client: MemberClient, image: str, now: float) -> None:
    """The pod by which the scheduler of a cluster is seen; what it would do is done here."""
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
        self._kept: dict[str, Kept] = {}
        self._taken: dict[str, str] = {}
        self._lock = threading.Lock()
        self._found = cluster.informer(RESERVATIONS)
        self._found.listen(self._on_change)

    def take(self, pod: Object) -> str:
        """The node that is kept for the pod, now its own; empty: none is."""
        labels = labels_of(pod)
        with self._lock:
            for key, kept in sorted(self._kept.items()):
                if any(selectors.matches_label_selector(each, labels) for each in kept.selectors):
                    del self._kept[key]
                    self._taken[kept.uid] = key_of(pod)
                    self._ledger.hand_over(kept.uid, uid_of(pod))
                    self.queue.add(key)
                    return kept.node
        return ""

    def _on_change(self, kind: str, found: Object) -> None:
        if kind == "DELETED":
            self._forget(key_of(found), uid_of(found))
        else:
            self.queue.add(key_of(found))

    def _forget(self, key: str, uid: str) -> None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept.uid == uid:
                del self._kept[key]
            self._taken.pop(uid, None)
        self._ledger.give_back(uid)

    def reconcile(self, key: str) -> float | None:
        found = self._found.get(key)
        if found is None:
            return None
        phase = (found.get("status") or {}).get("phase") or "Pending"
        if phase in ("Succeeded", "Failed"):
            self._forget(key, uid_of(found))
            return None
        if pod := self._taken.get(uid_of(found)):
            self._write(found, {"phase": "Succeeded", "currentOwners": [{"name": pod.partition("/")[2]}]})
            return None
        left = self._left_s(found)
        if left <= 0:
            self._forget(key, uid_of(found))
            self._write(found, {"phase": "Failed", "conditions": [{"type": "Ready", "reason": "Expired"}]})
            return None
        return self._hold(found, phase, left)

    def _hold(self, found: Object, phase: str, left: float) -> float:
        key, uid = key_of(found), uid_of(found)
        if key in self._kept:
            return left
        node = self._ledger.reserve(uid, _ask(found), (found.get("status") or {}).get("nodeName", ""))
        if not node:
            return min(RETRY_S, left)
        if phase != "Available":
            self._write(found, {"phase": "Available", "nodeName": node})
        owners = [each["labelSelector"] for each in found["spec"].get("owners") or [] if each.get("labelSelector")]
        with self._lock:
            self._kept[key] = Kept(key, uid, node, tuple(owners))
        self._ledger.wake()
        return left

    def _left_s(self, found: Object) -> float:
        ttl = str(found["spec"].get("ttl") or "24h")
        life = float(ttl[:-1]) * UNITS[ttl[-1]]
        born = parse_stamp(found["metadata"]["creationTimestamp"])
        return born + self.clock.real(life) - self.clock.now()

    def _write(self, found: Object, status: Object) -> None:
        body = {"metadata": {"uid": uid_of(found)}, "status": status}
        self._found.learn(self.client.merge_patch(RESERVATIONS.path(name=name_of(found), subresource="status"), body))


def _ask(found: Object) -> Ask:
    return ask_of(found["spec"]["template"])
