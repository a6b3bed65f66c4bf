"""Where nodes are in the network, in which order ranks go over them, and how fast a job runs for it.

Switches come from a table of ``asw psw ip`` lines (access switch, the switch above it, a node's address) or from node labels.
It must not know how gangs are placed: places and ranks in, an order or seconds out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jobs.core.faults import Faults

K = TypeVar("K")
FAR = 1000
"""What a step to a node under another psw costs, in steps to another asw: more than any ring has."""
OVERLAP = 0.443
"""The share of the backward pass, two thirds of a step, that communication hides behind; measured on VGG16 and ResNet50."""

Place = tuple[str, str]
"""(psw, asw)."""


def read(table: object, path: str, faults: Faults) -> dict[str, Place]:
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


def labelled(labels: Mapping[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    """The domain that a node's labels tell, widest first, as deep as they tell it."""
    domain: list[str] = []
    for key in keys:
        if not (value := labels.get(key)):
            break
        domain.append(value)
    return tuple(domain)


def ranked(addresses: Sequence[str], places: Mapping[str, Place]) -> list[str]:
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
        inside = {place: found for place, found in asws.items() if place[0] == psw}
        order += [address for place in _first_then_largest(inside) for address in inside[place]]
    return order + [address for address in addresses if address not in places]


def _first_then_largest(groups: Mapping[K, Sequence[str]]) -> list[K]:
    keys = list(groups)
    return keys[:1] + sorted(keys[1:], key=lambda key: -len(groups[key]))


def crossings(addresses: Sequence[str], places: Mapping[str, Place]) -> int:
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
