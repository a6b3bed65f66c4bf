"""Where nodes are in the network, in which order ranks go over them, and how fast a job runs for it.

Switches come from a table of ``asw psw ip`` lines (access switch, the switch above it, a node's address) or from node labels.
It must not know how gangs are placed: places and ranks in, an order or seconds out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jobs.core.manifest_fields import Faults

K = TypeVar("K")
FAR = 1000
"""What a step to a node under another psw costs, in steps to another asw: more than any ring has."""
OVERLAP = 0.443
"""The share of the backward pass, two thirds of a step, that communication hides behind; measured on VGG16 and ResNet50."""

Place = tuple[str, str]
"""(psw, asw)."""
Domain = tuple[str, ...]
"""A node's place at each of `LEVELS`, as deep as it is known; an empty name: not known at this level."""

LEVELS = ("zone", "psw", "asw")
"""Widest first: a data centre's part, the switch above the access switches, the access switch."""
LABELS: Mapping[str, tuple[str, ...]] = {
    "zone": ("topology.kubernetes.io/zone",),
    "psw": (
        "network.topology.nvidia.com/spine",
        "topology.kubernetes.io/block",
        "cloud.provider.com/topology-block",
        "cloud.google.com/gce-topology-block",
        "topology.k8s.aws/network-node-layer-2",
    ),
    "asw": (
        "network.topology.nvidia.com/leaf",
        "topology.kubernetes.io/rack",
        "cloud.provider.com/topology-rack",
        "cloud.google.com/gce-topology-subblock",
        "topology.k8s.aws/network-node-layer-3",
    ),
}
"""The node labels that usually name each level; the first that a node has counts."""
OWN_LABELS = "convoy.dev/topology-labels"
"""A cluster's annotation that names its own: ``zone=... psw=... asw=...``."""
TABLE, ENTRY = "node-topology-config", "topology_config"
"""The ConfigMap of ``asw psw ip`` lines, and its entry for all clusters."""


def parse_network(table: object, path: str, faults: Faults) -> dict[str, Place]:
    """Address → place of the lines of a ConfigMap's topology entry; every line that is none is a fault."""
    if not isinstance(table, str):
        faults.add(path, "must be text with one line a node: asw psw ip")
        return {}
    places: dict[str, Place] = {}
    for number, line in enumerate(table.splitlines(), start=1):
        words = line.split()
        if len(words) == 3:
            asw, psw, address = words
            if places.setdefault(address, (psw, asw)) != (psw, asw):
                faults.add(path, f"line {number} puts {address} under {asw}, an earlier line elsewhere: keep one")
        elif words:
            faults.add(path, f"line {number} must be three words, asw psw ip, not {line.strip()[:60]!r}")
    return places


def labels_of(annotations: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Per level the labels that name it in a cluster with these annotations; words that name no level are passed over."""
    pairs = (word.partition("=") for word in annotations.get(OWN_LABELS, "").split())
    own = {level: (label,) for level, _, label in pairs if level in LEVELS and label}
    return {**LABELS, **own}


def domain(labels: Mapping[str, str], keys: Mapping[str, Sequence[str]] = LABELS, place: Place | None = None) -> Domain:
    """Where a node is: what a table says of it before what its labels say."""
    names = [next((labels[key] for key in keys[level] if labels.get(key)), "") for level in LEVELS]
    if place is not None:
        names[1:] = place
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def place_of(domain: Domain) -> Place | None:
    """What the ring is ordered by; None for a node whose switches are unknown."""
    if len(domain) < len(LEVELS):
        return ("/".join(domain), "") if len(domain) == 2 else None
    return "/".join(domain[:2]), domain[2]


def rank_nodes(addresses: Sequence[str], places: Mapping[str, Place]) -> list[str]:
    """The addresses, given in order of their old ranks, so that neighbours share a switch wherever they can.

    Switches in the order: rank 0's own, then the one with most ranks, then the one seen first; unknown addresses come last.
    """
    psws: dict[str, list[str]] = {}
    asws: dict[Place, list[str]] = {}
    for address in addresses:
        if (place := places.get(address)) is not None:
            psws.setdefault(place[0], []).append(address)
            asws.setdefault(place, []).append(address)
    order = []
    for psw in _first_then_largest(psws):
        inside = {place: in_switch for place, in_switch in asws.items() if place[0] == psw}
        order += [address for place in _first_then_largest(inside) for address in inside[place]]
    return order + [address for address in addresses if address not in places]


def _first_then_largest(groups: Mapping[K, Sequence[str]]) -> list[K]:
    keys = list(groups)
    return keys[:1] + sorted(keys[1:], key=lambda key: -len(groups[key]))


def count_crossings(addresses: Sequence[str], places: Mapping[str, Place]) -> int:
    """What the ring over these costs: steps to another switch, those to another psw `FAR` times."""
    cost = 0
    for one, other in zip(addresses, (*addresses[1:], *addresses[:1]), strict=True):
        here, there = places.get(one), places.get(other)
        if one != other and (here is None or here != there):
            cost += FAR if here is None or there is None or here[0] != there[0] else 1
    return cost


@dataclass(frozen=True, slots=True)
class Step:
    """One training step of one GPU as far as its speed depends on the network."""

    seconds: float
    """Without waiting for the network."""
    gradients: float
    """Bytes that are reduced over all GPUs."""

    def reduce_s(self, gpus: int, gbs: float) -> float:
        """One all-reduce as ring: every GPU sends and receives 2(n-1)/n of the bytes."""
        return 2 * (gpus - 1) / gpus * self.gradients / (gbs * 1e9)

    def takes_s(self, gpus: int, gbs: float) -> float:
        """Over a bus of so many GB/s, with what hides behind the backward pass left out."""
        return self.seconds + max(0.0, self.reduce_s(gpus, gbs) - OVERLAP * 2 / 3 * self.seconds)

    def speedup(self, gpus: int, gbs: float, worst_gbs: float) -> float:
        """How much faster it is than on the worst place there is."""
        return self.takes_s(gpus, worst_gbs) / self.takes_s(gpus, gbs)
