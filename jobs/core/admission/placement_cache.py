"""Where gangs can be placed, with a memory of the shapes that are infeasible.

A shape is what a gang asks of clusters; gangs of one shape get one answer. A no is remembered until a cluster that may hold the
shape has new capacity, has changed, or is allowed again after a failure there. The nodes reserved for one big gang are hidden
from all others, except inside `without_reservation`. Quotas are not known here.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from jobs.core.admission import divided_placement
from jobs.core.admission.backfill_policy import ReservedNodes
from jobs.core.admission.plans import Spot
from jobs.core.admission.snapshot import Site
from jobs.core.gang.types import Gang, Promise, Runner
from jobs.core.placement.engine import Engine
from jobs.core.placement.explaining import explain
from jobs.core.placement.types import Assignment, Member, NodeFacts
from jobs.core.policies.weights import Weights
from jobs.core.reasons import Code, Verdict

Shape = Hashable
_FOR_EVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are kept for a big gang until it starts."""

    gang: Gang
    drain: ReservedNodes
    promise: Promise
    planned: datetime = field(compare=False)

    @property
    def until(self) -> datetime:
        return datetime.fromtimestamp(self.drain.starts, UTC)


class PlacementCache:
    """Everything by name; a promise by its key."""

    def __init__(self, sites: Iterable[Site] = (), weights: Weights | None = None) -> None:
        self.engine = Engine(weights)
        self.promises: dict[Hashable, Promise] = {}
        self.kept: Reservation | None = None
        self._beside = False
        """Looked at as if nothing were kept."""
        self._passed_over: tuple[int, set[Shape]] = (0, set())
        """Who fits nowhere even so, and the stamp of when that was found."""
        self._ids: dict[str, int] = {}
        self._nodes: dict[tuple[str, str], NodeFacts] = {}
        self._nowhere: dict[Shape, tuple[Gang, tuple[str, ...]]] = {}
        self._looked: dict[Shape, tuple[int, tuple[Verdict, ...]]] = {}
        self._stamp = 0
        """Moves on with every change: what was told by an older one is told anew."""
        self._grown: set[str] = set()
        self._changed = False
        self._wakes_at: datetime | None = None
        for site in sites:
            self.set_cluster(site.id, site.member)
            for node in site.nodes:
                self.set_node(site.member.name, node)
            for promise in site.promises:
                self.hold(promise)

    # as it is told

    def set_cluster(self, cluster_id: int, member: Member) -> None:
        self._ids[member.name] = cluster_id
        self.engine.set_cluster(member)
        self._changed = True
        self._stamp += 1

    def drop_cluster(self, name: str) -> None:
        self._ids.pop(name, None)
        self.engine.drop_cluster(name)
        self.promises = {key: each for key, each in self.promises.items() if each.cluster != name}
        self._nodes = {key: each for key, each in self._nodes.items() if key[0] != name}
        if self.kept is not None and self.kept.drain.cluster == name:
            self.kept = None
        self._changed = True
        self._stamp += 1

    def set_node(self, cluster: str, node: NodeFacts) -> None:
        before = self._nodes.get((cluster, node.name))
        if before == node:
            return
        self._nodes[cluster, node.name] = node
        self.engine.set_node(cluster, node)
        self._stamp += 1
        if before is None or _grew(before, node):
            self._grown.add(cluster)

    def drop_node(self, cluster: str, name: str) -> None:
        if self._nodes.pop((cluster, name), None):
            self.engine.drop_node(cluster, name)
            self._stamp += 1

    def hold(self, promise: Promise) -> None:
        if self.promises.get(promise.key) == promise:
            return
        self.release(promise.key)
        self.promises[promise.key] = promise
        self.engine.hold(promise)
        self._stamp += 1

    def hold_all(self, promises: Iterable[Promise]) -> None:
        for promise in promises:
            self.hold(promise)

    def release(self, key: Hashable) -> None:
        promise = self.promises.pop(key, None)
        if promise is not None:
            self.engine.release(key)
            self._grown.add(promise.cluster)
            self._stamp += 1

    def keep(self, kept: Reservation | None) -> None:
        """In place of what was kept."""
        before, self.kept = self.kept, kept
        if (before and before.promise) == (kept and kept.promise):
            return
        if before is not None:
            self.engine.release(before.promise.key)
            self._grown.add(before.promise.cluster)
        if kept is not None:
            self.engine.hold(kept.promise)
        self._stamp += 1

    def is_kept_for(self, job: int) -> bool:
        return self.kept is not None and self.kept.gang.job_id == job

    def turn_of(self, job: int) -> AbstractContextManager[None]:
        """Who nodes are kept for may use them."""
        return self.without_reservation() if self.is_kept_for(job) else nullcontext()

    @contextmanager
    def without_reservation(self) -> Iterator[None]:
        """As if nothing were kept: for the one it is kept for, and for those who are gone in time."""
        kept = self.kept
        if kept is None or self._beside:
            yield
            return
        self.engine.release(kept.promise.key)
        self._beside = True
        try:
            yield
        finally:
            self._beside = False
            if self.kept is kept:
                self.engine.hold(kept.promise)

    def node(self, cluster: str, name: str) -> NodeFacts | None:
        return self._nodes.get((cluster, name))

    # what is asked of it

    def find(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Assignment | None:
        """The best place now, of a job that is divided for its largest share; a no is remembered."""
        if shape in self._nowhere:
            return None
        asking = self._barring(gang, only)
        if gang.division is not None:
            found = next(iter(divided_placement.place(self.engine, asking, now)), None)
        else:
            found = self.engine.find(asking, gang.demand, now)
        if found is None:
            self._nowhere[shape] = (gang, only)
            coming = [until for until in gang.excluded.values() if until > now]
            self._wakes_at = min([*coming, *([self._wakes_at] if self._wakes_at else [])], default=None)
        return found

    def spot(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Spot | None:
        """The best place now, with what every cluster says."""
        if gang.division is not None and shape not in self._nowhere:
            return self._divided(shape, gang, only, now)
        found = self.find(shape, gang, only, now)
        if found is None:
            return None
        _, verdicts = self._looked.get(shape, (0, ()))
        if not verdicts or not verdicts[0].fits or verdicts[0].cluster != found.cluster:
            verdicts = self.look(shape, gang, only, now)
        return self._spot(found, verdicts)

    def _divided(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Spot | None:
        if self.find(shape, gang, only, now) is None:
            return None
        shares = divided_placement.place(self.engine, self._barring(gang, only), now)
        verdicts = self.look(shape, gang, only, now)
        first, *others = (Spot(self._ids[share.cluster], share, verdicts) for share in shares)
        return replace(first, others=tuple(others))

    def _spot(self, found: Assignment, verdicts: Sequence[Verdict]) -> Spot:
        first = [verdict for verdict in verdicts if verdict.cluster == found.cluster]
        rest = [verdict for verdict in verdicts if verdict.cluster != found.cluster]
        return Spot(self._ids[found.cluster], found, (*first, *rest))

    def look(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> tuple[Verdict, ...]:
        """What every cluster says to it, those that hold it first."""
        known = self._looked.get(shape)
        if known is None or known[0] != self._stamp or self._beside:
            verdicts = self._verdicts(self._barring(gang, only), now)
            told = tuple(self.held_back(_barred(each, gang.leaf, only), gang, only, now) for each in verdicts)
            known = (self._stamp, told)
            if not self._beside:
                self._looked[shape] = known
        return known[1]

    def _verdicts(self, asking: Gang, now: datetime) -> list[Verdict]:
        if asking.division is not None:
            return divided_placement.explain(self.engine, asking, now)
        return [look.verdict for look in explain(self.engine, asking, asking.demand, now)]

    def find_backfill(self, shape: Shape, gang: Gang, only: tuple[str, ...], now: datetime) -> Spot | None:
        """A place where nodes are kept for another, for one who may use them."""
        if self._passed_over[0] != self._stamp:
            self._passed_over = (self._stamp, set())
        if self.kept is None or gang.division is not None or shape in self._passed_over[1]:
            return None
        with self.without_reservation():
            found = self._find_on(self.kept.drain.cluster, gang, only, now)
            if found is None:
                self._passed_over[1].add(shape)
                return None
            return self._spot(found, self.look(shape, gang, only, now))

    def invalidate(self, shape: Shape) -> None:
        """Its no is forgotten."""
        self._nowhere.pop(shape, None)

    def _find_on(self, cluster: str, gang: Gang, only: tuple[str, ...], now: datetime) -> Assignment | None:
        others = {name: _FOR_EVER for name in self._ids if name != cluster}
        asking = self._barring(gang, only)
        return self.engine.find(replace(asking, excluded={**asking.excluded, **others}), gang.demand, now)

    def held_back(self, verdict: Verdict, gang: Gang, only: tuple[str, ...], now: datetime) -> Verdict:
        """Names the gang for which the cluster keeps nodes, if that is what is in the way, and to that one how many."""
        kept = self.kept
        if kept is None or self._beside or verdict.cluster != kept.drain.cluster or not verdict.is_crowded:
            return verdict
        many, until = len(kept.drain.nodes), f"{kept.until:%H:%M:%S} UTC"
        nodes = f"{many} node{'s' if many > 1 else ''}"
        if gang.job_id == kept.gang.job_id:
            told = f"{verdict.message}; {nodes} are kept for it, expected to be free at {until}"
            return replace(verdict, message=told)
        with self.without_reservation():
            fits = self._find_on(verdict.cluster, gang, only, now) is not None
        told = f"keeps {nodes} for {kept.gang.name} until it starts, expected at {until}"
        if not fits:
            return replace(verdict, message=f"{verdict.message}; {told}")
        return Verdict(verdict.cluster, Code.KEPT_FOR_GANG, told)

    def forget(self) -> list[Shape]:
        """All noes; whose they were."""
        shapes = list(self._nowhere)
        self._nowhere.clear()
        self._looked.clear()
        self._grown.clear()
        self._changed, self._wakes_at = False, None
        return shapes

    @property
    def has_new_capacity(self) -> bool:
        """Whether anything is freer or another than when last asked."""
        return self._changed or bool(self._grown)

    def requeued(self, now: datetime) -> list[Shape]:
        """Shapes to search for again: a cluster that may hold them has new capacity, has changed, or is allowed again."""
        if self._changed or (self._wakes_at is not None and self._wakes_at <= now):
            return self.forget()
        indices = [self.engine.fleet.sites[name].index for name in self._grown if name in self.engine.fleet.sites]
        self._grown.clear()
        requeued = (
            [shape for shape, (gang, _) in self._nowhere.items() if self._might_fit(gang, indices)] if indices else []
        )
        for shape in requeued:
            del self._nowhere[shape]
        return requeued

    def _might_fit(self, gang: Gang, indices: Sequence[int]) -> bool:
        prepared = self.engine.prepared(divided_placement.demand_of(gang, 1) if gang.division else gang.demand)
        if not prepared.possible:
            return False
        holding = self.engine.holding(prepared, gang.fit)
        return any(bool((mask & holding)[indices].any()) for mask in self.engine.masks(gang))

    def _barring(self, gang: Gang, only: tuple[str, ...]) -> Gang:
        """The gang, kept from clusters that its queue may not use."""
        if not only:
            return gang
        barred = {name: _FOR_EVER for name in self._ids if name not in only}
        return replace(gang, excluded={**gang.excluded, **barred})

    # what if

    @contextmanager
    def what_if(self) -> Iterator[None]:
        """Whatever is held or released meanwhile is as before afterwards, and no no is remembered."""
        before, grown = dict(self.promises), set(self._grown)
        noes, looked, wakes_at = dict(self._nowhere), dict(self._looked), self._wakes_at
        self._nowhere = {}
        try:
            yield
        finally:
            for key in [key for key, each in self.promises.items() if before.get(key) != each]:
                self.release(key)
            for promise in before.values():
                self.hold(promise)
            self._nowhere, self._looked, self._wakes_at, self._grown = noes, looked, wakes_at, grown

    def without(self, runner: Runner) -> list[Promise]:
        """As if all pods of the runner were gone, and what is held for it; returns what was held, for `back`."""
        held = [self.promises[key] for key in runner.promises if key in self.promises]
        for promise in held:
            self.release(promise.key)
        if runner.pods and runner.cluster in self._ids:
            nodes = tuple(({name: -amount for name, amount in asked.items()}, (node,)) for node, asked in runner.pods)
            self.hold(Promise(("gone", runner.job_id), runner.cluster, {}, nodes))
        self._nowhere.clear()
        return held

    def back(self, runner: Runner, held: Iterable[Promise]) -> None:
        """Undoes `without`, given what that returned."""
        self.release(("gone", runner.job_id))
        self.hold_all(held)
        self._nowhere.clear()


def _grew(before: NodeFacts, after: NodeFacts) -> bool:
    """Whether something may fit on it now that did not before."""
    if replace(before, requested={}) != replace(after, requested={}):
        return True
    names = {*before.requested, *after.requested}
    return any(after.requested.get(name, 0) < before.requested.get(name, 0) for name in names)


def _barred(verdict: Verdict, leaf: str, only: tuple[str, ...]) -> Verdict:
    if not only or verdict.cluster in only or verdict.code is not Code.FAILED_HERE:
        return verdict
    return Verdict(verdict.cluster, Code.NOT_SELECTED, f"is not for queue {leaf}, which uses {', '.join(only)} alone")
