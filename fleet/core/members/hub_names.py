"""What an object of a member is called at the fleet: ``NAME.CLUSTER``, as a host and its domain.

Two members may have objects of one name, so the name at the fleet holds both. It follows from the two alone, never changes,
and can be taken apart again: names of clusters have no dots. Only a name that would be longer than Kubernetes allows is
cut, and ends in a hash of the whole.
"""

import hashlib

LONGEST = 253
"""Characters of the longest name Kubernetes allows."""
_DIGITS = 10
"""Of the hash that ends a name which was cut."""


def hub_name(name: str, cluster: str) -> str:
    whole = f"{name}.{cluster}"
    if len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: LONGEST - len(cluster) - 1 - _DIGITS]}{digest}.{cluster}"


def split(hub: str) -> tuple[str, str]:
    """Name and cluster; no cluster where there is no dot. The name may be one that was cut: see `kept_of`."""
    name, _, cluster = hub.rpartition(".")
    return (name, cluster) if name else (hub, "")


def kept_of(hub: str) -> str:
    """What a cut name has kept of the name in the member; empty for a name that cannot have been cut."""
    name, cluster = split(hub)
    return name[:-_DIGITS] if cluster and len(hub) == LONGEST else ""
