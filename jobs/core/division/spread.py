"""Which clusters a job is spread over: spread constraints, exactly. A choice is found if and only if there is one.

Clusters are counted, and so are the groups (regions, zones or providers) they are in. Knows counts alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FIELDS = ("cluster", "region", "zone", "provider")
CLUSTER = "cluster"
UNLIMITED = 2**31


@dataclass(frozen=True, slots=True)
class Spread:
    """So many groups at least and at most."""

    by: str
    least: int = 1
    most: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    room: int
    """Pods it could take."""
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pick:
    """The roomiest choice of so many clusters in so many groups."""

    room: int
    names: tuple[str, ...]
    heads: tuple[str, ...]
    """The roomiest cluster of each new group."""


def choose(
    options: Sequence[Option], replicas: int, spreads: Sequence[Spread], current: Sequence[Option] = (), *, few: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The clusters to divide over, and those of them that must get a pod; nothing when no choice does.

    ``few``: as few clusters as do; else as many as may. ``current`` have a share already, and count.
    """
    clusters = next((each for each in spreads if each.by == CLUSTER), Spread(CLUSTER))
    groups = next((each for each in spreads if each.by != CLUSTER), None)
    by = groups.by if groups else ""
    there = {option.places.get(by, "") for option in current}
    usable = [each for each in options if each.room > 0 and (not by or each.places.get(by))]
    least, most = clusters.least - len(current), clusters.most - len(current)
    g_least, g_most = (groups.least - len(there), groups.most - len(there)) if groups else (0, UNLIMITED)
    candidates = [
        (pick, held, count)
        for (held, count), pick in _picks(usable, by, there, min(most, len(usable)), g_most).items()
        if pick.room >= replicas and g_least <= held and least <= count <= most and max(least, g_least) <= replicas
    ]
    if not candidates:
        return (), ()
    sign = 1 if few else -1
    pick, _, _ = min(candidates, key=lambda each: (sign * each[2], sign * each[1], -each[0].room, each[0].names))
    group_count = max(least, 0)
    rest = [name for name in pick.names if name not in pick.heads]
    must = pick.heads[: max(g_least, 0)]
    more = [*pick.heads[len(must) :], *rest][: max(group_count - len(must), 0)]
    return pick.names, (*must, *more)


def _picks(options: Sequence[Option], by: str, there: set[str], most: int, groups: int) -> dict[tuple[int, int], _Pick]:
    """By (new groups, clusters), the roomiest pick: group after group, of each its roomiest ones."""
    grouped: dict[str, list[Option]] = {}
    for option in sorted(options, key=lambda each: (-each.room, each.name)):
        grouped.setdefault(option.places.get(by, "") if by else "", []).append(option)
    picks = {(0, 0): _Pick(0, (), ())}
    for name, members in sorted(grouped.items()):
        new = 1 if by and name not in there else 0
        for (held, count), pick in list(picks.items()):
            if held + new > groups:
                continue
            room, names = pick.room, pick.names
            heads = (*pick.heads, members[0].name) if new else pick.heads
            for taken, member in enumerate(members[: max(most - count, 0)], start=1):
                room, names = room + member.room, (*names, member.name)
                _keep(picks, (held + new, count + taken), _Pick(room, names, heads))
    return picks


def _keep(picks: dict[tuple[int, int], _Pick], key: tuple[int, int], pick: _Pick) -> None:
    known = picks.get(key)
    if known is None or (-pick.room, pick.names) < (-known.room, known.names):
        picks[key] = pick
