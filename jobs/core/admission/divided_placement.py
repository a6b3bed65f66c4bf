"""Where the shares of a divided job go: the room of every cluster, the division of its pods, and the verdict on each cluster.

Asks the engine cluster by cluster and changes nothing there. All shares have a place at once, or none has.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from jobs.core.division.replicas import Choice, Preference, Strategy, divide
from jobs.core.gang.requirements import GangRequirements
from jobs.core.gang.types import Gang
from jobs.core.placement.engine import Engine, Mask
from jobs.core.placement.explaining import explain_clusters as explain_whole
from jobs.core.placement.types import Assignment
from jobs.core.reasons import Code, Verdict

_FOR_EVER = datetime.max.replace(tzinfo=UTC)


def demand_of(gang: Gang, pods: int) -> GangRequirements:
    """The requirements of ``pods`` pods of a divided job, which has one role."""
    whole = gang.demand
    return replace(whole, parts=tuple(replace(part, replicas=pods) for part in whole.parts))


@dataclass(slots=True)
class _Asking:
    """The room that clusters have for one divided job, asked of the engine at one moment."""

    engine: Engine
    gang: Gang
    pods: int
    now: datetime

    def choices(self) -> Iterator[list[Choice]]:
        """For each term of the policy its clusters with their room, tier by tier."""
        tiers = self.gang.policy.tiers if self.gang.policy else (0,)
        term: list[Choice] = []
        for mask, tier in zip(self.engine.masks(self.gang), tiers, strict=True):
            if tier == 0 and term:
                yield term
                term = []
            known = {each.name for each in term}
            term += [self._choice(name, tier) for name in self._allowed(mask) if name not in known]
        yield term

    def _allowed(self, mask: Mask) -> list[str]:
        standing = self.gang.division.standing if self.gang.division else ()
        names = [self.engine.name_of(int(index)) for index in mask.nonzero()[0]]
        return sorted(n for n in names if n and n not in standing and not self._excluded(n))

    def _excluded(self, name: str) -> bool:
        until = self.gang.excluded.get(name)
        return until is not None and until > self.now

    def _choice(self, name: str, tier: int) -> Choice:
        return Choice(name, self.room(name, self.pods), self.places(name), self._weight(name), tier)

    def places(self, name: str) -> dict[str, str]:
        return {key: value for key, value in self.engine.members[name].places.items() if value}

    def _weight(self, name: str) -> int:
        rules = self.gang.policy.weights if self.gang.policy else ()
        member = self.engine.members[name]
        hits = [w for affinity, w in rules if affinity.allows(name, member.labels, member.places)]
        return max(hits, default=0 if rules else 1)

    def room(self, name: str, most: int) -> int:
        """How many of its pods the cluster could take, ``most`` at most."""
        index = self.engine.fleet.sites[name].index
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            prepared = self.engine.prepared(demand_of(self.gang, middle))
            if prepared.possible and self.engine.holding(prepared)[index]:
                low = middle
            else:
                high = middle - 1
        return low

    def place(self, name: str, pods: int) -> Assignment | None:
        barred = {other: _FOR_EVER for other in self.engine.members if other != name}
        return self.engine.find(replace(self.gang, excluded=barred), demand_of(self.gang, pods), self.now)


def place_shares(engine: Engine, gang: Gang, now: datetime) -> tuple[Assignment, ...]:
    """An assignment for every share, the largest first; empty when not all pods have a place."""
    asking, strategy = _Asking(engine, gang, sum(r for _, r, _ in gang.roles), now), _strategy_of(gang)
    standing = [Choice(n, 0, asking.places(n)) for n in _placed_clusters(gang) if n in engine.members]
    for term in asking.choices():
        if shares := _in_term(asking, term, strategy, standing):
            return shares
    return ()


def _in_term(asking: _Asking, term: list[Choice], strategy: Strategy, standing: list[Choice]) -> tuple[Assignment, ...]:
    """Divide among the clusters of one term. A cluster whose nodes hold less than its counts promised gets less, and all is
    divided again."""
    while shares := divide(asking.pods, term, strategy, standing):
        order = sorted(shares, key=lambda name: (-shares[name], name))
        assignments = {name: asking.place(name, shares[name]) for name in order}
        lacking = {name for name, assignment in assignments.items() if assignment is None}
        if not lacking:
            return tuple(assignment for assignment in assignments.values() if assignment is not None)
        term = [
            replace(c, room=_largest_fitting(asking, c.name, shares[c.name])) if c.name in lacking else c for c in term
        ]
    return ()


def _largest_fitting(asking: _Asking, name: str, refused: int) -> int:
    return next((pods for pods in range(refused - 1, 0, -1) if asking.place(name, pods)), 0)


def _strategy_of(gang: Gang) -> Strategy:
    return gang.policy.division if gang.policy and gang.policy.division else Strategy()


def _placed_clusters(gang: Gang) -> tuple[str, ...]:
    return gang.division.standing if gang.division else ()


def explain_shares(engine: Engine, gang: Gang, now: datetime) -> list[Verdict]:
    """A verdict on every cluster: its share, or its room, or why it takes no pod at all."""
    asking = _Asking(engine, gang, sum(r for _, r, _ in gang.roles), now)
    assignments = place_shares(engine, gang, now)
    taken = {share.cluster: sum(part.replicas for part in share.demand.parts) for share in assignments}
    looks = {look.cluster: look.verdict for look in explain_whole(engine, gang, demand_of(gang, 1), now)}
    rooms = {name: asking.room(name, asking.pods) if looks[name].fits else 0 for name in looks}
    why = _obstacle(gang, sum(rooms.values()) >= asking.pods)
    verdicts = [
        _verdict_on(looks[name], taken, rooms[name], asking.pods, _placed_clusters(gang), why) for name in looks
    ]
    return sorted(verdicts, key=lambda verdict: (-taken.get(verdict.cluster, 0), not verdict.fits, verdict.cluster))


def _obstacle(gang: Gang, enough: bool) -> str:
    """Why the job is not placed although there is room enough for all its pods; empty when there is not."""
    if not enough:
        return ""
    if _strategy_of(gang).preference is Preference.BY_WEIGHT:
        return ", and not all the static weights give it, here or elsewhere"
    return ", which cannot be spread as the policy asks"


def _verdict_on(
    look: Verdict, taken: dict[str, int], room: int, pods: int, standing: tuple[str, ...], why: str
) -> Verdict:
    if look.cluster in standing:
        return replace(look, code=Code.NOT_SELECTED, message="has a share of it already")
    if share := taken.get(look.cluster):
        return replace(look, code=Code.FITS, message=f"takes {share} of {pods} pods, has room for {room}")
    if not look.fits:
        return look
    if taken:
        return replace(look, message=f"has room for {room} of {pods} pods, and gets none")
    return replace(look, code=Code.NOT_ENOUGH_FREE, message=f"has room for {room} of {pods} pods{why}")
