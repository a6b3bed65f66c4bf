"""Over which network domains a gang is split that no single one holds: as few switches as there can be, and whole ones.

Only counts are looked at, of one shape of pods; which nodes inside a domain is `picking`'s affair.
"""

from collections.abc import Iterator

from jobs.core.placing.fleet import Fleet, Site

Path = tuple[str, ...]
Split = list[tuple[tuple[int, int], int]]
"""(level, domain) of the narrowest domains → pods."""


def split(fleet: Fleet, site: Site, within: tuple[int, int] | None, column: int, pods: int) -> Split | None:
    """The fullest domains are filled whole, the rest goes to the smallest that holds it; None: no way by domains."""
    top = () if within is None else next(path for path, domain in site.domains.items() if domain == within[1])
    return _split(fleet, site, top, column, pods) if next(_inside(site, top), None) else None


def _split(fleet: Fleet, site: Site, top: Path, column: int, pods: int) -> Split | None:
    rooms = {path: int(fleet.near[site.domains[path], 2 * column]) for path in _inside(site, top)}
    if not rooms:
        return [((len(top) - 1, site.domains[top]), pods)]
    found: Split = []
    open_paths = sorted((path for path in rooms if rooms[path] > 0), key=lambda path: (-rooms[path], path))
    for at, path in enumerate(open_paths):
        holds_rest = [each for each in open_paths[at:] if rooms[each] >= pods]
        chosen = min(holds_rest, key=lambda each: (rooms[each], each), default=path)
        part = _split(fleet, site, chosen, column, min(pods, rooms[chosen]))
        if part is None:
            return None
        found += part
        pods -= min(pods, rooms[chosen])
        if not pods:
            return found
    return None


def _inside(site: Site, top: Path) -> Iterator[Path]:
    """The domains one level narrower."""
    depth = len(top)
    return (path for path in site.domains if len(path) == depth + 1 and path[:depth] == top)
