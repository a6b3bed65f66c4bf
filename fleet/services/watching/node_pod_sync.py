"""Writes the observed state of a member into rows: nodes with the requests of their pods, the pods of our jobs, and holds.

There is one `NodePodSync` for each watched member, used by one thread. It remembers what it has written and writes only
differences, in one transaction: nodes, then pods, then holds. A hold ends once all its pods are bound to nodes and counted
there. After a complete list it compares with the rows themselves, which corrects any row that another process wrote. A failed
transaction can be repeated.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID, uuid4

from django.db import DataError, transaction
from django.db.models import Model

from fleet.changes import events, journal
from fleet.core.members import capacity
from fleet.core.members.capacity import Difference, Ledger, NodeState
from fleet.core.members.hub_names import hub_name
from fleet.core.members.observed import Key, Mark, ObservedNode, ObservedPod, OwnPod
from fleet.db import bulk, isolation, prepared
from fleet.db.prepared import KEY, TIME, UID
from fleet.models import Cluster, Hold, Node, Pod
from fleet.services.clusters import clusters
from fleet.services.logs import recording
from fleet.services.logs.recording import ENDED

_NODE_FIELDS = (
    "ready", "not_ready_since", "unschedulable", "address", "problem", "labels", "taints", "allocatable", "requested",
    "reclaimable",
)  # fmt: skip
_POD_FIELDS = (
    "uid", "job_uid", "attempt", "role", "index", "node", "phase", "ready_containers", "containers", "restarts", "reason",
    "message", "created_at", "started_at", "exit_code", "disruption", "running_since", "details", "state",
)  # fmt: skip
_CLUSTER_FIELDS = ("uid", "name", "synced_at", "region", "zone", "resource_version", "impersonation")
_HOLDS = prepared.Rows(
    lambda param: Hold.objects.filter(
        cluster_id=param("cluster", KEY), released_at=None, job_uid__in=param("uids", UID)
    )
)
_BOUND = prepared.Rows(
    lambda param: (
        Pod.objects.filter(cluster_id=param("cluster", KEY), job_uid__in=param("uids", UID))
        .exclude(node="")
        .order_by()
        .values_list("job_uid", "attempt", "phase", "namespace", "name")
    )
)
_FREE = prepared.Rows(
    lambda param: (
        Hold.objects.filter(pk__in=param("pks", KEY), released_at=None)
        .select_for_update(no_key=True, skip_locked=True)
        .values_list("pk")
    )
)
_RELEASE = prepared.Update(
    lambda param: (Hold.objects.filter(pk__in=param("pks", KEY)), {"released_at": param("now", TIME)})
)
_CLUSTER = prepared.Rows(
    lambda param: (
        Cluster.objects.filter(pk=param("pk", KEY))
        .only(*_CLUSTER_FIELDS)
        .order_by()
        .select_for_update(of=("self",), no_key=True)
    )
)
_AT_ONCE = 200
"""Rows of one statement: SQLite limits the number of parameters."""

UNWRITABLE = (DataError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that malformed data cause, here or in the database."""


class ClusterGone(isolation.Ends):
    """The cluster was detached. Its watch must stop."""


@dataclass(slots=True)
class NodePodSync:
    cluster_id: int
    ledger: Ledger = field(default_factory=Ledger)
    _own: dict[Key, ObservedPod] = field(default_factory=dict)
    _written: dict[Key, ObservedPod] = field(default_factory=dict)
    _touched: set[Key] = field(default_factory=set)
    _not_ready_since: dict[str, datetime] = field(default_factory=dict)
    """By the names of nodes, by our own clock."""
    _unallocated: dict[Key, ObservedPod] = field(default_factory=dict)
    """Pods with a node whose claims were not seen allocated yet: the watch of pods was faster than that of claims."""
    awaits_devices: bool = False
    """Whether the member has devices for claims that were not listed yet."""
    _nodes_listed: bool = False
    _pods_listed: bool = False
    _listed_again: bool = False

    def list_nodes(self, nodes: Sequence[ObservedNode]) -> None:
        self.ledger.relist_nodes(nodes)
        self._nodes_listed = self._listed_again = True

    def list_pods(self, pods: Sequence[ObservedPod]) -> None:
        self._unallocated = {pod.key: pod for pod in pods if self._awaits_claims(pod)}
        seen = [self._before_binding(pod) if pod.key in self._unallocated else pod for pod in pods]
        self.ledger.relist_pods(seen)
        self._own = {pod.key: pod for pod in seen if pod.own}
        self._pods_listed = self._listed_again = True

    def see_pod(self, pod: ObservedPod) -> None:
        """A pod of a job is bound once its devices are counted too: its hold ends then, and not before."""
        self._unallocated.pop(pod.key, None)
        if self._awaits_claims(pod):
            self._unallocated[pod.key] = pod
            return
        self.ledger.see_pod(pod)
        if pod.own:
            self._own[pod.key] = pod
        else:
            self._own.pop(pod.key, None)
        self._touched.add(pod.key)

    def _awaits_claims(self, pod: ObservedPod) -> bool:
        return bool(pod.own and pod.claims and self.ledger.devices.is_on and not self._is_allocated(pod))

    def _before_binding(self, pod: ObservedPod) -> ObservedPod:
        before = self._own.get(pod.key)
        if before and before.own and pod.own and before.own.uid == pod.own.uid:
            return before
        return replace(pod, node="", counts=False)

    def see_allocated(self) -> None:
        """After claims have changed."""
        for pod in [
            pod for pod in self._unallocated.values() if not self.ledger.devices.is_on or self._is_allocated(pod)
        ]:
            self.see_pod(pod)

    def _is_allocated(self, pod: ObservedPod) -> bool:
        return all(self.ledger.devices.is_allocated((pod.namespace, claim)) for claim in pod.claims)

    def lose_pod(self, key: Key) -> None:
        self._unallocated.pop(key, None)
        self.ledger.lose_pod(key)
        self._own.pop(key, None)
        self._touched.add(key)

    @property
    def complete(self) -> bool:
        """Whether nodes, pods and devices have been listed. Before that, the free capacity would be overstated."""
        return self._nodes_listed and self._pods_listed and not self.awaits_devices

    def write(self, now: datetime) -> set[Mark]:
        """Writes all differences, and returns the attempts whose pods changed. Does nothing before both lists are complete."""
        if not self.complete:
            return set()
        if not self._listed_again:
            return self._write_differences(now)
        with transaction.atomic():
            # The rows are read under the cluster's lock, so that no other process writes between reading and comparing.
            self._lock_cluster()
            self._read_rows(now)
            marks = self._write_differences(now)
        self._listed_again = False
        return marks

    def _read_rows(self, now: datetime) -> None:
        nodes = list(Node.objects.filter(cluster_id=self.cluster_id))
        self.ledger.remember({row.name: _node_state(row) for row in nodes})
        self._not_ready_since = {row.name: row.not_ready_since or now for row in nodes if not row.ready}
        if any(not row.ready and row.not_ready_since is None for row in nodes):  # written by a former version
            undated = Node.objects.filter(cluster_id=self.cluster_id, ready=False, not_ready_since=None)
            undated.update(not_ready_since=now)
        pods = Pod.objects.filter(cluster_id=self.cluster_id)
        self._written = {(row.namespace, row.name): _pod_seen(row) for row in pods}
        self._touched |= self._own.keys() | self._written.keys()

    def _write_differences(self, now: datetime) -> set[Mark]:
        nodes = self.ledger.difference()
        pods = {key: self._own[key] for key in self._touched if key in self._own and self._differs(key)}
        deleted = [key for key in self._touched if key in self._written and key not in self._own]
        marks = {pod.own.mark for pod in (*pods.values(), *(self._written[key] for key in deleted)) if pod.own}
        marks |= {before.own.mark for key in pods if (before := self._written.get(key)) and before.own}
        if nodes.changed or nodes.gone or pods or deleted or self._listed_again:
            self._commit(nodes, pods, deleted, marks, now)
        # Only after the commit: when it fails, the same differences are found and written again.
        self.ledger.settle(nodes)
        self._written |= pods
        for key in deleted:
            del self._written[key]
        self._touched.clear()
        return marks

    def leave_out_unwritable(self) -> list[str]:
        """After a failed write: drops the observed nodes and pods that cannot be stored, and returns their names.

        Their rows keep the last state that could be stored.
        """
        left_out = []
        for name, stand in self.ledger.difference().changed.items():
            if not _can_be_written(Node, _node_row(self.cluster_id, name, stand, None)):
                self.ledger.lose_node(name)
                left_out.append(f"Node {name}")
        for key in sorted(self._touched & self._own.keys()):
            pod = self._own[key]
            if pod.own and not _can_be_written(Pod, _pod_row(self.cluster_id, pod, pod.own)):
                before = self._written.get(key)
                if before is None:
                    del self._own[key]
                else:
                    self._own[key] = before
                left_out.append(f"Pod {key[0]}/{key[1]}")
        return left_out

    def _differs(self, key: Key) -> bool:
        pod, before = self._own[key], self._written.get(key)
        return before is None or (pod.node, pod.own) != (before.node, before.own)

    def _commit(
        self, nodes: Difference, pods: dict[Key, ObservedPod], deleted: list[Key], marks: set[Mark], now: datetime
    ) -> None:
        with transaction.atomic():
            cluster = self._lock_cluster()
            # Nodes and pods before holds: the capacity of a hold that ends must be counted by the rows of its pods.
            changes = [*self._write_nodes(cluster, nodes, now), *self._write_pods(cluster, pods, deleted, now)]
            ended = self._end_holds(None if self._listed_again else marks, now)
            if self._listed_again:
                _synced(cluster, self.ledger, now)
            events.announce(changes, now)
            if nodes.gained or any(self._kept_more(hold, pods) for hold, pods in ended):
                clusters.freed(self.cluster_id)

    def _end_holds(self, marks: set[Mark] | None, now: datetime) -> list[tuple[Hold, list[Key]]]:
        """Ends the holds whose gangs are completely bound to nodes. Returns them with their pods.

        ``marks`` limits this to the holds of these attempts; ``None`` means every hold of the cluster.
        """
        if marks is None:
            holds = list(Hold.objects.filter(cluster_id=self.cluster_id, released_at=None))
        else:
            holds = _HOLDS.objects(cluster=self.cluster_id, uids=list({mark.job_uid for mark in marks}))
        open_holds = {(hold.job_uid, hold.attempt): hold for hold in holds}
        if not open_holds:
            return []
        pods: dict[tuple[UUID, int], list[Key]] = defaultdict(list)
        rows = _BOUND.values(cluster=self.cluster_id, uids=list({uid for uid, _ in open_holds}))
        for uid, attempt, phase, *key in rows:
            hold = open_holds.get((uid, attempt))
            # After a resize pods of the size before, which have ended, must not be taken for those that are still to come.
            if hold is not None and (hold.resized_at is None or phase not in ENDED):
                pods[uid, attempt].append((key[0], key[1]))
        done = {hold.pk: (hold, pods[key]) for key, hold in open_holds.items() if len(pods[key]) >= hold.pods}
        # Locked rows are skipped: the other transaction ends that hold, and may itself be waiting for a lock of this one.
        pks = [pk for (pk,) in _FREE.values(pks=list(done))]
        _RELEASE.run(pks=pks, now=now)
        return [done[pk] for pk in pks]

    def _kept_more(self, hold: Hold, pods: Iterable[Key]) -> bool:
        """Whether an ended hold frees capacity: it held more than its pods use, in total or on one of the nodes it names."""
        taken = map(self.ledger.taken_by, pods)
        if hold.resized_at is not None:
            return True  # it held for some of its pods, and which these are is not known
        if not hold.nodes:
            return capacity.exceeds([(hold.amounts, [""])], (("", amounts) for _, amounts in taken))
        return capacity.exceeds(hold.nodes, taken)

    def _lock_cluster(self) -> Cluster:
        rows = _CLUSTER.objects(pk=self.cluster_id)
        if not rows:
            raise ClusterGone
        return rows[0]

    def _write_nodes(self, cluster: Cluster, nodes: Difference, now: datetime) -> list[journal.Change]:
        for name in nodes.gone:
            self._not_ready_since.pop(name, None)
        rows = [
            _node_row(cluster.pk, name, stand, self._follow_readiness(stand[0], now))
            for name, stand in nodes.changed.items()
        ]
        bulk.upsert(rows, ["cluster", "name"], _NODE_FIELDS)
        for chunk in _chunks(sorted(nodes.gone)):
            Node.objects.filter(cluster=cluster, name__in=chunk).delete()
        node_change = partial(journal.Change, "Node", cluster.name)
        changed = [node_change(name, str(cluster.uid), journal.Action.MODIFIED) for name in nodes.changed]
        return changed + [node_change(name, str(cluster.uid), journal.Action.DELETED) for name in nodes.gone]

    def _follow_readiness(self, node: ObservedNode, now: datetime) -> datetime | None:
        """Since when the node is not ready. None: it is."""
        if node.ready:
            self._not_ready_since.pop(node.name, None)
            return None
        since = min(self._not_ready_since.get(node.name, now), now)
        self._not_ready_since[node.name] = since
        return since

    def _has_just_ended(self, row: Pod) -> bool:
        before = self._written.get((row.namespace, row.name))
        own = before.own if before else None
        return row.phase in ENDED and (own is None or (own.uid, own.phase) != (row.uid, row.phase))

    def _write_pods(
        self, cluster: Cluster, pods: dict[Key, ObservedPod], deleted: list[Key], now: datetime
    ) -> list[journal.Change]:
        rows = [_pod_row(self.cluster_id, pod, pod.own) for pod in pods.values() if pod.own]
        bulk.upsert(rows, ["cluster", "namespace", "name"], _POD_FIELDS)
        recording.record(cluster, [row for row in rows if self._has_just_ended(row)], now)
        for namespace in {namespace for namespace, _ in deleted}:
            names = [name for pod_namespace, name in deleted if pod_namespace == namespace]
            for chunk in _chunks(names):
                Pod.objects.filter(cluster_id=self.cluster_id, namespace=namespace, name__in=chunk).delete()
        action, name = journal.Action, cluster.name
        changed = [
            _pod_change(name, pod, action.MODIFIED if key in self._written else action.ADDED)
            for key, pod in pods.items()
        ]
        return changed + [_pod_change(name, self._written[key], action.DELETED) for key in deleted]


def _synced(cluster: Cluster, ledger: Ledger, now: datetime) -> None:
    """Records the time of a complete list, and the region and zone of the cluster.

    The first list is announced, because capacity and location of the cluster are known from then on.
    """
    before = (cluster.synced_at is None, cluster.region, cluster.zone)
    cluster.synced_at = now
    cluster.region = ledger.place("topology.kubernetes.io/region")
    cluster.zone = ledger.place("topology.kubernetes.io/zone")
    if before == (False, cluster.region, cluster.zone):
        cluster.save(update_fields=["synced_at"])
    else:
        clusters.announce(cluster, ["synced_at", "region", "zone"], now)


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[i : i + _AT_ONCE] for i in range(0, len(names), _AT_ONCE))


def _pod_change(cluster: str, pod: ObservedPod, action: journal.Action) -> journal.Change:
    """A journal entry for a pod under its hub name. The hub name contains the cluster, also of a pod that was deleted."""
    uid = pod.own.uid if pod.own else ""
    return journal.Change("Pod", pod.namespace, hub_name(pod.name, cluster), uid, action)


def _can_be_written(model: type[Model], row: Model) -> bool:
    """Whether the database accepts the row: inserts it under a temporary name and rolls that back."""
    row.name = f"try-{uuid4()}"  # type: ignore[attr-defined]  # every synced row has a name
    try:
        with transaction.atomic():
            model._default_manager.bulk_create([row])
            transaction.set_rollback(True)
    except UNWRITABLE:
        return False
    return True


def _node_row(cluster_id: int, name: str, stand: NodeState, not_ready_since: datetime | None) -> Node:
    seen, requested, reclaimable = stand
    return Node(
        cluster_id=cluster_id,
        name=name,
        ready=seen.ready,
        not_ready_since=not_ready_since,
        unschedulable=seen.unschedulable,
        address=seen.address,
        problem=seen.problem,
        labels=seen.labels,
        taints=seen.taints,
        allocatable=seen.allocatable,
        requested=requested,
        reclaimable=reclaimable,
    )


def _pod_row(cluster_id: int, pod: ObservedPod, own: OwnPod) -> Pod:
    return Pod(
        cluster_id=cluster_id,
        namespace=pod.namespace,
        name=pod.name,
        uid=own.uid,
        job_uid=own.mark.job_uid,
        attempt=own.mark.attempt,
        role=own.role,
        index=own.index,
        node=pod.node,
        phase=own.phase,
        ready_containers=own.ready_containers,
        containers=own.containers,
        restarts=own.restarts,
        reason=own.reason,
        message=own.message,
        created_at=own.created_at,
        started_at=own.started_at,
        exit_code=own.exit_code,
        disruption=own.disruption,
        running_since=own.running_since,
        details=own.details,
        state=own.state,
    )


def _pod_seen(row: Pod) -> ObservedPod:
    own = OwnPod(
        mark=Mark(row.job_uid, row.attempt),
        uid=row.uid,
        role=row.role,
        index=row.index,
        phase=row.phase,
        ready_containers=row.ready_containers,
        containers=row.containers,
        restarts=row.restarts,
        reason=row.reason,
        message=row.message,
        created_at=row.created_at,
        started_at=row.started_at,
        exit_code=row.exit_code,
        disruption=row.disruption,
        running_since=row.running_since,
        details=row.details,
        state=row.state,
    )
    return ObservedPod(row.namespace, row.name, row.node, counts=False, request={}, own=own)


def _node_state(row: Node) -> NodeState:
    facts = row.labels, row.taints, row.allocatable, row.address, row.problem
    seen = ObservedNode(row.name, row.ready, row.unschedulable, *facts)
    return seen, row.requested, row.reclaimable
