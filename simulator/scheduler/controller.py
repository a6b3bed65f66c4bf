"""Binds waiting pods: watches pods, nodes and pod groups, gets a plan from `packing`, and carries it out.

It keeps its own holds, so that a pod that was just bound counts at once, before the watch reports it.
"""

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from fleet.core.units import plus
from fleet.kube.resources import (
    NODES,
    POD_GROUPS,
    PODS,
    RESERVATIONS,
    RESOURCE_CLAIMS,
    SIGS_POD_GROUPS,
    VOLCANO_POD_GROUPS,
)
from fleet.member.client import Object
from fleet.member.errors import MemberError, MemberMissing
from simulator.machinery.clock import stamp
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import (
    annotations_of,
    condition,
    is_finished,
    is_leaving,
    key_of,
    name_of,
    namespace_of,
    node_of,
    split_key,
    uid_of,
)
from simulator.scheduler.device_claims import DeviceClaims
from simulator.scheduler.fit import Amounts, NodeInfo, PodRequest, amounts, node_info, pod_request
from simulator.scheduler.packing import (
    TASK_AFFINITY,
    VOLCANO,
    Group,
    Placed,
    Waiting,
    best_node,
    group_of,
    plan,
    waiting_of,
)
from simulator.scheduler.reservations import Reservations

ROUND = "round"
"""The only key in the queue. Every change causes one more round over all waiting pods."""
BINDERS = 4


class Scheduler(Controller):
    name = "scheduler"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(PODS)
        served = {"podgroup": POD_GROUPS, "sigs": SIGS_POD_GROUPS, VOLCANO: VOLCANO_POD_GROUPS}
        self._groups = {api: cluster.informer(each) for api, each in served.items() if cluster.serves(each)}
        self._lock = threading.Lock()
        self._holds: dict[str, tuple[str, Amounts]] = {}
        self._doubts: dict[str, Placed] = {}
        self._waiting: dict[str, Waiting] = {}
        self._node_infos: dict[str, NodeInfo] = {}
        self._reported: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(BINDERS, thread_name_prefix="binder")
        self.reservations = Reservations(cluster, self) if cluster.serves(RESERVATIONS) else None
        self._claims = DeviceClaims(cluster, self._on_claims) if cluster.serves(RESOURCE_CLAIMS) else None
        self._pods.listen(self._on_pod)
        for informer in self._groups.values():
            informer.listen(lambda _kind, _obj: self.queue.add(ROUND))
        cluster.informer(NODES).listen(self._on_node)

    def start(self) -> None:
        super().start()
        if self.reservations:
            self.reservations.start()

    def stop(self) -> None:
        super().stop()
        if self.reservations:
            self.reservations.stop()
        self._pool.shutdown(cancel_futures=True)

    def reconcile(self, key: str) -> float | None:
        self._enqueue_groups()
        expected = self._expected()
        with self._lock:
            waiting = [pod for pod in self._waiting.values() if pod.uid not in self._holds]
            if not waiting and not self._doubts and not expected:
                return None
            verdict = plan(waiting, self._node_infos, self._count_groups())
            for placed in verdict.bindings:
                self._holds[placed.pod.uid] = (placed.node, placed.pod.request.amounts)
            verdict.bindings += expected
            doubts = list(self._doubts.values())
        settled = [self._pool.submit(self._settle, placed) for placed in doubts]
        bound: list[Future[bool]] = [self._pool.submit(self._bind, placed) for placed in verdict.bindings]
        reported = [self._pool.submit(self._report, pod, message) for pod, message in verdict.refusals.items()]
        failed = [future for future in [*settled, *bound, *reported] if not future.result()]
        return 0.2 if failed else None

    def _expected(self) -> list[Placed]:
        """The waiting pods that have a reservation, each with its node."""
        if self.reservations is None:
            return []
        with self._lock:
            waiting = [pod for pod in self._waiting.values() if pod.uid not in self._holds]
        objects = [(pod, self._pods.get(pod.key)) for pod in waiting]
        nodes = [(pod, self.reservations.take(obj)) for pod, obj in objects if obj is not None]
        return [Placed(pod, node) for pod, node in nodes if node]

    def reserve(self, uid: str, request: PodRequest, node: str) -> str:
        with self._lock:
            if uid in self._holds:
                return self._holds[uid][0]
            info = self._node_infos.get(node) or best_node(request, self._node_infos.values())
            if info is None:
                return ""
            info.hold(request.amounts)
            self._holds[uid] = (info.name, request.amounts)
            return info.name

    def give_back(self, uid: str) -> None:
        with self._lock:
            freed = self._release(uid)
        if freed:
            self.wake()

    def hand_over(self, uid: str, heir: str) -> None:
        with self._lock:
            if uid in self._holds:
                self._holds[heir] = self._holds.pop(uid)

    def wake(self) -> None:
        self.queue.add(ROUND)

    def _info(self, node: Object) -> NodeInfo:
        info = node_info(node)
        info.offers |= self._claims.offers(info.name) if self._claims else {}
        return info

    def _amounts(self, pod: Object) -> Amounts:
        return plus((pod_request(pod["spec"]), self._claims.asked(pod) if self._claims else {}))

    def _waiting_of(self, pod: Object) -> Waiting:
        waiting = waiting_of(pod)
        if not pod["spec"].get("resourceClaims"):
            return waiting
        wanted = self._amounts(pod)
        return replace(
            waiting, request=replace(waiting.request, amounts=wanted, shape=f"{waiting.request.shape}{wanted}")
        )

    def _on_claims(self) -> None:
        """Slices, templates or claims have changed."""
        with self._lock:
            for key, waiting in self._waiting.items():
                pod = self._pods.get(key)
                if pod is not None and uid_of(pod) == waiting.uid and pod["spec"].get("resourceClaims"):
                    self._waiting[key] = self._waiting_of(pod)
            for info in self._node_infos.values():
                info.offers |= self._claims.offers(info.name) if self._claims else {}
        self.queue.add(ROUND)

    def _on_node(self, kind: str, node: Object) -> None:
        name = name_of(node)
        with self._lock:
            if kind == "DELETED":
                self._node_infos.pop(name, None)
            else:
                info = self._info(node)
                for at, request in self._holds.values():
                    if at == name:
                        info.hold(request)
                self._node_infos[name] = info
        self.queue.add(ROUND)

    def _on_pod(self, kind: str, pod: Object) -> None:
        uid, key = uid_of(pod), key_of(pod)
        has_ended = kind == "DELETED" or is_finished(pod)
        with self._lock:
            if has_ended:
                known = self._waiting.get(key)
                if known is not None and known.uid == uid:
                    del self._waiting[key]
                self._reported.pop(uid, None)
                wake = self._release(uid) or bool(group_of(pod))
            elif node_of(pod):
                self._waiting.pop(key, None)
                self._reported.pop(uid, None)
                self._hold(uid, node_of(pod), pod)
                wake = False
            else:
                if is_leaving(pod) or pod["spec"].get("schedulingGates"):
                    self._waiting.pop(key, None)
                elif key not in self._waiting or self._waiting[key].uid != uid:
                    self._waiting[key] = self._waiting_of(pod)
                wake = True
        if has_ended and self._claims and pod["spec"].get("resourceClaims"):
            self._pool.submit(self._claims.release, pod)
        if wake:
            self.queue.add(ROUND)

    def _hold(self, uid: str, node: str, pod: Object) -> None:
        held = self._holds.get(uid)
        if held is not None and held[0] == node:
            return
        self._release(uid)
        request = self._amounts(pod)
        self._holds[uid] = (node, request)
        if node in self._node_infos:
            self._node_infos[node].hold(request)

    def _release(self, uid: str) -> bool:
        held = self._holds.pop(uid, None)
        if held is None:
            return False
        node, request = held
        if node in self._node_infos:
            self._node_infos[node].hold(request, -1)
        return True

    def _count_groups(self) -> dict[str, Group]:
        wanted = {pod.group for pod in self._waiting.values() if pod.group}
        present = dict.fromkeys(wanted, 0)
        placed = dict.fromkeys(wanted, 0)
        for pod in self._pods.all() if wanted else ():
            group = group_of(pod)
            if group in wanted and (not is_finished(pod) or pod["status"]["phase"] == "Succeeded"):
                present[group] += 1
                placed[group] += bool(node_of(pod)) or uid_of(pod) in self._holds
        least = {pod.group: pod.least for pod in self._waiting.values()}
        groups: dict[str, Group] = {}
        for name in wanted:
            api, _, key = name.partition("/")
            if api == "koordinator":
                stated = self._groups["sigs"].get(key) if "sigs" in self._groups else None
                of_group = int(((stated or {}).get("spec") or {}).get("minMember") or 1)
                groups[name] = Group(max(least[name], of_group), present[name], placed[name])
            elif api in self._groups and (obj := self._groups[api].get(key)) is not None:
                need = int((obj.get("spec") or {}).get("minMember") or 1)
                groups[name] = Group(need, present[name], placed[name], _affine_roles(obj))
        return groups

    def _enqueue_groups(self) -> None:
        """Volcano's enqueue action: a pod group goes from Pending to Inqueue when its minResources are free."""
        groups = self._groups[VOLCANO].all() if VOLCANO in self._groups else []
        free: Amounts = {}
        with self._lock:
            for info in self._node_infos.values():
                free = plus((free, {name: info.free(name) for name in info.offers}))
        for group in sorted(groups, key=key_of):
            phase = (group.get("status") or {}).get("phase") or "Pending"
            requested = amounts((group.get("spec") or {}).get("minResources"))
            if phase == "Pending" and all(free.get(name, 0) >= amount for name, amount in requested.items()):
                self._write_phase(group, "Inqueue")
                phase = "Inqueue"
            if phase == "Inqueue":
                free = plus((free, {name: -amount for name, amount in requested.items()}))

    def _write_phase(self, group: Object, phase: str) -> None:
        path = VOLCANO_POD_GROUPS.path(namespace_of(group), name_of(group), "status")
        with contextlib.suppress(MemberMissing):
            body = {"metadata": {"uid": uid_of(group)}, "status": {"phase": phase}}
            self._groups[VOLCANO].learn(self.client.merge_patch(path, body))

    def _bind(self, placed: Placed) -> bool:
        namespace, name = split_key(placed.pod.key)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": placed.pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": placed.node},
        }
        try:
            pod = self._pods.get(placed.pod.key)
            if self._claims and pod is not None:
                self._claims.allocate(pod, placed.node)
            self.client.create(PODS.path(namespace, name, "binding"), body)
        except MemberError:
            return self._settle(placed)
        return True

    def _settle(self, placed: Placed) -> bool:
        """After a failed binding: releases the hold once the API server confirms that the pod has no node."""
        namespace, name = split_key(placed.pod.key)
        try:
            pod = self.client.get(PODS.path(namespace, name))
        except MemberMissing:
            pod = {}
        except MemberError:
            with self._lock:
                self._doubts[placed.pod.uid] = placed
            return False
        with self._lock:
            self._doubts.pop(placed.pod.uid, None)
            if not pod or uid_of(pod) != placed.pod.uid or not node_of(pod):
                self._release(placed.pod.uid)
        return bool(pod and node_of(pod))

    def _report(self, key: str, message: str) -> bool:
        """Writes the condition PodScheduled with the reason why the pod waits, if the message has changed."""
        pod = self._pods.get(key)
        if pod is None or node_of(pod) or self._reported.get(uid_of(pod)) == message:
            return True
        current = condition(pod, "PodScheduled") or {}
        if current.get("message") != message:
            others = [c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] != "PodScheduled"]
            entry = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
                "lastTransitionTime": current.get("lastTransitionTime") or stamp(self.clock.now()),
            }
            status = {"phase": "Pending", "conditions": [*others, entry]}
            namespace, name = split_key(key)
            try:
                self.client.merge_patch(
                    PODS.path(namespace, name, "status"), {"metadata": {"uid": uid_of(pod)}, "status": status}
                )
            except MemberError as e:
                return isinstance(e, MemberMissing)
        self._reported[uid_of(pod)] = message
        return True


def _affine_roles(group: Object) -> frozenset[str]:
    """The roles that Volcano's task-topology plugin should place on one node: ``ps,worker``."""
    return frozenset(filter(None, annotations_of(group).get(TASK_AFFINITY, "").replace(";", ",").split(",")))
