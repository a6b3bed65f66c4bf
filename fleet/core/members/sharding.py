"""How many members each watcher process watches, when several share them.

Every watcher computes the same quotas from the same rows, so that none has to ask another one. Knows no database.
"""

from collections.abc import Mapping


def quotas(owned: Mapping[str, int], members: int) -> dict[str, int]:
    """How many members each live watcher is to own, by what each owns now; the quotas differ by one at most.

    Watchers that own the most get the larger quotas, so that a watcher that comes or goes moves as few members as possible.
    """
    if not owned:
        return {}
    each, remainder = divmod(members, len(owned))
    by_load = sorted(owned, key=lambda watcher: (-owned[watcher], watcher))
    return {watcher: each + (rank < remainder) for rank, watcher in enumerate(by_load)}
