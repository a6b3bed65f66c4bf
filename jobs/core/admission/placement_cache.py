"""Where gangs can be placed now, and the shapes already known to be infeasible.

A shape is what a gang asks of clusters; gangs of one shape get one answer. An infeasible shape stays so until a cluster that
may hold it has new capacity, has changed, or is allowed again after a failure there. The nodes reserved for one big gang are
hidden from all others, except inside `without_reservation`. Quotas are not known here.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from jobs.core.admission import divided_placement
from jobs.core.admission.backfill_policy import ReservedNodes
from jobs.core.admission.plans import Placement
from jobs.core.admission.snapshot import ClusterState
from jobs.core.gang.types import AdmittedGang, CapacityHold, Gang
from jobs.core.placement.engine import Engine
from jobs.core.placement.explaining import explain_clusters
from jobs.core.placement.types import Assignment, Member, NodeFacts
from jobs.core.policies.weights import Weights
from jobs.core.reasons import Amounts, Code, Verdict
from jobs.core.resizing import holds

Shape = Hashable
_FOR_EVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are set aside for a big gang until it starts."""

    gang: Gang
    reserved: ReservedNodes
    hold: CapacityHold
    planned_at: datetime = field(compare=False)

    @property
    def until(self) -> datetime:
        return datetime.fromtimestamp(self.reserved.starts, UTC)


class PlacementCache:
    """Clusters and nodes are keyed by name, capacity that is held by the key of its hold."""

    def __init__(self, sites: Iterable[ClusterState] = (), weights: Weights | None = None) -> None:
        self.engine = Engine(weights)
        self.holds: dict[Hashable, CapacityHold] = {}
        self.reservation: Reservation | None = None
        self._reservation_lifted = False
        """Inside `without_reservation`."""
        self._infeasible_on_reserved: tuple[int, set[Shape]] = (0, set())
        """Shapes infeasible even on reserved nodes, with the generation at which that was computed."""
        self._feasible: tuple[int, set[Shape]] = (0, set())
        """Shapes that can be placed, with the generation at which that was computed."""
        self._ids: dict[str, int] = {}
        self._nodes: dict[tuple[str, str], NodeFacts] = {}
        self._infeasible: dict[Shape, tuple[Gang, tuple[str, ...]]] = {}
        self._verdicts: dict[Shape, tuple[int, tuple[Verdict, ...]]] = {}
        self._generation = 0
        """Incremented by every change; verdicts of an older generation are computed again."""
        self._grown_clusters: set[str] = set()
        self._changed = False
        self._requeue_at: datetime | None = None
        for site in sites:
            self.set_cluster(site.id, site.member)
            for node in site.nodes:
                self.set_node(site.member.name, node)
            for hold in site.holds:
                self.hold(hold)

    # inputs

    def set_cluster(self, cluster_id: int, member: Member) -> None:
        self._ids[member.name] = cluster_id
        self.engine.set_cluster(member)
        self._changed = True
        self._generation += 1

    def drop_cluster(self, name: str) -> None:
        self._ids.pop(name, None)
        self.engine.drop_cluster(name)
        self.holds = {key: each for key, each in self.holds.items() if each.cluster != name}
        self._nodes = {key: each for key, each in self._nodes.items() if key[0] != name}
        if self.reservation is not None and self.reservation.reserved.cluster == name:
            self.reservation = None
        self._changed = True
        self._generation += 1

    def set_node(self, cluster: str, node: NodeFacts) -> None:
        before = self._nodes.get((cluster, node.name))
        if before == node:
            return
        self._nodes[cluster, node.name] = node
        self.engine.set_node(cluster, node)
        self._generation += 1
        if before is None or _has_more_room(before, node):
            self._grown_clusters.add(cluster)

    def drop_node(self, cluster: str, name: str) -> None:
        if self._nodes.pop((cluster, name), None):
            self.engine.drop_node(cluster, name)
            self._generation += 1

    def hold(self, hold: CapacityHold) -> None:
        if self.holds.get(hold.key) == hold:
            return
        self.release(hold.key)
        self.holds[hold.key] = hold
        self.engine.hold(hold)
        self._generation += 1

    def hold_all(self, holds: Iterable[CapacityHold]) -> None:
        for hold in holds:
            self.hold(hold)

    def release(self, key: Hashable) -> None:
        hold = self.holds.pop(key, None)
        if hold is not None:
            self.engine.release(key)
            self._grown_clusters.add(hold.cluster)
            self._generation += 1

    def set_reservation(self, reservation: Reservation | None) -> None:
        """Replace the reservation; None ends it."""
        before, self.reservation = self.reservation, reservation
        if (before and before.hold) == (reservation and reservation.hold):
            return
        if before is not None:
            self.engine.release(before.hold.key)
            self._grown_clusters.add(before.hold.cluster)
        if reservation is not None:
            self.engine.hold(reservation.hold)
        self._generation += 1

    def is_reserved_for(self, job: int) -> bool:
        return self.reservation is not None and self.reservation.gang.job_id == job

    def on_own_reservation(self, job: int) -> AbstractContextManager[None]:
        """Let the gang that nodes are reserved for use them."""
        return self.without_reservation() if self.is_reserved_for(job) else nullcontext()

    @contextmanager
    def without_reservation(self) -> Iterator[None]:
        """Search as if nothing were reserved: for the gang with the reservation, and for gangs that end before it starts."""
        reservation = self.reservation
        if reservation is None or self._reservation_lifted:
            yield
            return
        self.engine.release(reservation.hold.key)
        self._reservation_lifted = True
        try:
            yield
        finally:
            self._reservation_lifted = False
            if self.reservation is reservation:
                self.engine.hold(reservation.hold)

    def node_facts(self, cluster: str, name: str) -> NodeFacts | None:
        return self._nodes.get((cluster, name))

    # queries

    def fits(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> bool:
        """Whether `find` has an answer. Unlike the assignment, this is computed once per shape and generation."""
        if self._reservation_lifted:
            return self.find(shape, gang, only, now) is not None
        if self._feasible[0] != self._generation:
            self._feasible = (self._generation, set())
        if shape in self._feasible[1]:
            return True
        fits = self.find(shape, gang, only, now) is not None
        if fits:
            self._feasible[1].add(shape)
        return fits

    def find(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Assignment | None:
        """The best assignment now, or None; None is remembered. Of a divided job it is the assignment of its largest share."""
        if shape in self._infeasible:
            return None
        restricted = self._restricted(gang, only)
        if gang.division is not None:
            assignment = next(iter(divided_placement.place_shares(self.engine, restricted, now)), None)
        else:
            assignment = self.engine.find(restricted, gang.demand, now)
        if assignment is None:
            self._infeasible[shape] = (gang, only)
            coming = [until for until in gang.excluded.values() if until > now]
            self._requeue_at = min([*coming, *([self._requeue_at] if self._requeue_at else [])], default=None)
        return assignment

    def find_with_verdicts(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Placement | None:
        """As `find`, with the verdicts of all clusters and all shares of a divided job."""
        if gang.division is not None and shape not in self._infeasible:
            return self._find_divided(shape, gang, only, now)
        assignment = self.find(shape, gang, only, now)
        if assignment is None:
            return None
        _, verdicts = self._verdicts.get(shape, (0, ()))
        if not verdicts or not verdicts[0].fits or verdicts[0].cluster != assignment.cluster:
            verdicts = self.verdicts(shape, gang, only, now)
        return self._with_verdicts(assignment, verdicts)

    def _find_divided(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Placement | None:
        if self.find(shape, gang, only, now) is None:
            return None
        shares = divided_placement.place_shares(self.engine, self._restricted(gang, only), now)
        verdicts = self.verdicts(shape, gang, only, now)
        first, *others = (Placement(self._ids[share.cluster], share, verdicts) for share in shares)
        return replace(first, others=tuple(others))

    def _with_verdicts(self, assignment: Assignment, verdicts: Sequence[Verdict]) -> Placement:
        first = [verdict for verdict in verdicts if verdict.cluster == assignment.cluster]
        rest = [verdict for verdict in verdicts if verdict.cluster != assignment.cluster]
        return Placement(self._ids[assignment.cluster], assignment, (*first, *rest))

    def verdicts(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> tuple[Verdict, ...]:
        """One verdict for each cluster, those that can hold the gang first; cached per shape and generation."""
        known = self._verdicts.get(shape)
        if known is None or known[0] != self._generation or self._reservation_lifted:
            verdicts = self._compute_verdicts(self._restricted(gang, only), now)
            named = (
                self.name_reservation(_as_not_selected(verdict, gang.leaf, only), gang, only, now)
                for verdict in verdicts
            )
            known = (self._generation, tuple(named))
            if not self._reservation_lifted:
                self._verdicts[shape] = known
        return known[1]

    def _compute_verdicts(self, restricted: Gang, now: datetime) -> list[Verdict]:
        if restricted.division is not None:
            return divided_placement.explain_shares(self.engine, restricted, now)
        return [look.verdict for look in explain_clusters(self.engine, restricted, restricted.demand, now)]

    def find_backfill(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Placement | None:
        """A placement on the reserved nodes, for a gang that may use them although they are another's."""
        if self._infeasible_on_reserved[0] != self._generation:
            self._infeasible_on_reserved = (self._generation, set())
        if self.reservation is None or gang.division is not None or shape in self._infeasible_on_reserved[1]:
            return None
        with self.without_reservation():
            assignment = self._find_on(self.reservation.reserved.cluster, gang, only, now)
            if assignment is None:
                self._infeasible_on_reserved[1].add(shape)
                return None
            return self._with_verdicts(assignment, self.verdicts(shape, gang, only, now))

    def find_on(self, cluster: str, gang: Gang, only: tuple[str, ...], now: datetime) -> Placement | Verdict:
        """Where the gang can be placed on this cluster, or why it cannot."""
        assignment = self._find_on(cluster, gang, only, now)
        if assignment is not None:
            return Placement(self._ids[cluster], assignment, ())
        verdicts = [
            _as_not_selected(v, gang.leaf, only) for v in self._compute_verdicts(self._restricted(gang, only), now)
        ]
        verdict = next((verdict for verdict in verdicts if verdict.cluster == cluster), None)
        gone = Verdict(cluster, Code.NOT_READY, "is not a cluster of the fleet any more")
        return gone if verdict is None else self.name_reservation(verdict, gang, only, now)

    def invalidate(self, shape: Shape) -> None:
        """Search for this shape again."""
        self._infeasible.pop(shape, None)

    def _find_on(self, cluster: str, gang: Gang, only: tuple[str, ...], now: datetime) -> Assignment | None:
        others = {name: _FOR_EVER for name in self._ids if name != cluster}
        restricted = self._restricted(gang, only)
        return self.engine.find(replace(restricted, excluded={**restricted.excluded, **others}), gang.demand, now)

    def name_reservation(self, verdict: Verdict, gang: Gang, only: tuple[str, ...], now: datetime) -> Verdict:
        """The verdict, with the reservation in its message where that is why the gang does not fit.

        Without the name of the reserved gang: all gangs of a shape get the verdict, whichever team they are of.
        """
        reservation = self.reservation
        if reservation is None or self._reservation_lifted:
            return verdict
        if verdict.cluster != reservation.reserved.cluster or not verdict.is_crowded:
            return verdict
        count, until = len(reservation.reserved.nodes), f"{reservation.until:%H:%M:%S} UTC"
        nodes = f"{count} node{'s' if count > 1 else ''}"
        if gang.job_id == reservation.gang.job_id:
            message = f"{verdict.message}; {nodes} are kept for it, expected to be free at {until}"
            return replace(verdict, message=message)
        with self.without_reservation():
            fits = self._find_on(verdict.cluster, gang, only, now) is not None
        message = f"keeps {nodes} for a gang that comes first until it starts, expected at {until}"
        if not fits:
            return replace(verdict, message=f"{verdict.message}; {message}")
        return Verdict(verdict.cluster, Code.KEPT_FOR_GANG, message)

    def invalidate_all(self) -> list[Shape]:
        """Search for all shapes again; returns those that were infeasible."""
        shapes = list(self._infeasible)
        self._infeasible.clear()
        self._verdicts.clear()
        self._grown_clusters.clear()
        self._changed, self._requeue_at = False, None
        return shapes

    @property
    def has_new_capacity(self) -> bool:
        """Whether a cluster has changed or has more room since `requeued` was last called."""
        return self._changed or bool(self._grown_clusters)

    def requeued(self, now: datetime) -> list[Shape]:
        """Shapes to search for again: a cluster that may hold them has new capacity, has changed, or is allowed again."""
        if self._changed or (self._requeue_at is not None and self._requeue_at <= now):
            return self.invalidate_all()
        sites = self.engine.fleet.sites
        indices = [sites[name].index for name in self._grown_clusters if name in sites]
        self._grown_clusters.clear()
        requeued = (
            [shape for shape, (gang, _) in self._infeasible.items() if self._might_fit(gang, indices)]
            if indices
            else []
        )
        for shape in requeued:
            del self._infeasible[shape]
        return requeued

    def _might_fit(self, gang: Gang, indices: Sequence[int]) -> bool:
        prepared = self.engine.prepared(divided_placement.demand_of(gang, 1) if gang.division else gang.demand)
        if not prepared.possible:
            return False
        holding = self.engine.holding(prepared, gang.fit)
        return any(bool((mask & holding)[indices].any()) for mask in self.engine.masks(gang))

    def _restricted(self, gang: Gang, only: tuple[str, ...]) -> Gang:
        """The gang, excluded from the clusters that its queue may not use."""
        if not only:
            return gang
        barred = {name: _FOR_EVER for name in self._ids if name not in only}
        return replace(gang, excluded={**gang.excluded, **barred})

    # what if

    @contextmanager
    def what_if(self) -> Iterator[None]:
        """Undo all holds and releases at the end, and remember none of the answers given meanwhile."""
        before, grown = dict(self.holds), set(self._grown_clusters)
        infeasible, verdicts, requeue_at = dict(self._infeasible), dict(self._verdicts), self._requeue_at
        self._infeasible = {}
        try:
            yield
        finally:
            for key in [key for key, each in self.holds.items() if before.get(key) != each]:
                self.release(key)
            for hold in before.values():
                self.hold(hold)
            self._infeasible, self._verdicts = infeasible, verdicts
            self._requeue_at, self._grown_clusters = requeue_at, grown

    def remove_gang(self, runner: AdmittedGang) -> list[CapacityHold]:
        """As if the gang's pods and holds were gone; returns the holds, for `restore_gang`."""
        held = [self.holds[key] for key in runner.hold_keys if key in self.holds]
        for hold in held:
            self.release(hold.key)
            if runner.fewer:
                self.hold(_smaller(hold, runner.unbound))
        if runner.pods and runner.cluster in self._ids:
            nodes = tuple(({name: -amount for name, amount in asked.items()}, (node,)) for node, asked in runner.pods)
            self.hold(CapacityHold(("gone", runner.leaving_key), runner.cluster, {}, nodes))
        self._infeasible.clear()
        return held

    def restore_gang(self, runner: AdmittedGang, held: Iterable[CapacityHold]) -> None:
        """Undo `remove_gang` with the holds it returned."""
        self.release(("gone", runner.leaving_key))
        self.hold_all(held)
        self._infeasible.clear()


def _smaller(hold: CapacityHold, requests: Iterable[Amounts]) -> CapacityHold:
    """The hold without one pod for each of these requests."""
    nodes: holds.Nodes = hold.nodes
    total: Amounts = hold.total
    for request in requests:
        nodes, total = holds.less(nodes, request, 1), holds.minus(total, request, 1)
    return replace(hold, total=total, nodes=tuple((amounts, tuple(names)) for amounts, names in nodes))


def _has_more_room(before: NodeFacts, after: NodeFacts) -> bool:
    """Whether a pod may fit on the node now that did not before."""
    if replace(before, requested={}) != replace(after, requested={}):
        return True
    names = {*before.requested, *after.requested}
    return any(after.requested.get(name, 0) < before.requested.get(name, 0) for name in names)


def _as_not_selected(verdict: Verdict, leaf: str, only: tuple[str, ...]) -> Verdict:
    if not only or verdict.cluster in only or verdict.code is not Code.FAILED_HERE:
        return verdict
    return Verdict(verdict.cluster, Code.NOT_SELECTED, f"is not for queue {leaf}, which uses {', '.join(only)} alone")
