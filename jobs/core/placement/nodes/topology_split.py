"""Over which network domains a gang is split that no single one holds: as few switches as there can be, and whole ones.

Only counts are looked at, of one shape of pods; which nodes inside a domain is `picking`'s affair.
"""

from jobs.core.placement.nodes.capacity_index import Fleet, Site

Path = tuple[str, ...]
Split = list[tuple[tuple[int, int], int]]
"""(level, domain) of the narrowest domains → pods."""


def split(fleet: Fleet, site: Site, within: tuple[int, int] | None, column: int, pods: int) -> Split | None:
    """The fullest domains are filled whole, the rest goes to the smallest that holds it; None: no way by domains."""
    top = () if within is None else site.levels.path[within[1]]
    return _split(fleet, site, top, column, pods) if top in site.levels.inside else None


def _split(fleet: Fleet, site: Site, top: Path, column: int, pods: int) -> Split | None:
    rooms = {path: int(fleet.near[site.domains[path], 2 * column]) for path in site.levels.inside.get(top, ())}
    if not rooms:
        return [((len(top) - 1, site.domains[top]), pods)]
    pieces: Split = []
    open_paths = sorted((path for path in rooms if rooms[path] > 0), key=lambda path: (-rooms[path], path))
    for at, path in enumerate(open_paths):
        holds_rest = [each for each in open_paths[at:] if rooms[each] >= pods]
        chosen = min(holds_rest, key=lambda each: (rooms[each], each), default=path)
        part = _split(fleet, site, chosen, column, min(pods, rooms[chosen]))
        if part is None:
            return None
        pieces += part
        pods -= min(pods, rooms[chosen])
        if not pods:
            return pieces
    return None
