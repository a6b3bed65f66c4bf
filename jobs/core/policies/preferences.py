"""What a job and its policy say about the choice among clusters that fit: where the data is, and what the score weighs.

``convoy.dev/data: region=eu,dataset.example.com/imagenet=true`` on a job names cluster labels that say its data is near.
``convoy.dev/score-weights: cost=3,topology=0`` on a policy changes weights of the score; the others keep their default.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields

from fleet.kube import names
from jobs.core.manifest_fields import Faults
from jobs.core.policies.weights import MAX_WEIGHT, Weights

DATA = "convoy.dev/data"
WEIGHTS = "convoy.dev/score-weights"
PARTS = tuple(part.name for part in fields(Weights))
_MOST_LABELS = 32

Labels = frozenset[tuple[str, str]]


def data(annotations: object, faults: Faults) -> Labels:
    """The cluster labels that say where a job's data is; each share of them that a cluster has counts."""
    pairs: set[tuple[str, str]] = set()
    path = f"metadata.annotations.{DATA}"
    for entry in _entries(annotations, DATA):
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or names.pair_fault(key, value):
            faults.add(path, f"must be cluster labels like region=eu,dataset=imagenet; {entry[:80]!r} is none")
        else:
            pairs.add((key, value))
    if len(pairs) > _MOST_LABELS:
        faults.add(path, f"names {len(pairs)} labels, more than {_MOST_LABELS}")
    return frozenset(pairs)


def weights(annotations: object, faults: Faults) -> tuple[tuple[str, float], ...]:
    """The weights that a policy states, by part; the parts it does not name keep the operator's."""
    path = f"metadata.annotations.{WEIGHTS}"
    stated: dict[str, float] = {}
    for entry in _entries(annotations, WEIGHTS):
        name, _, text = (part.strip() for part in entry.partition("="))
        if name not in PARTS:
            faults.add(path, f"{name[:40]!r} is no part of the score; known are {', '.join(PARTS)}")
        elif (weight := _weight(text)) is None:
            faults.add(path, f"the weight of {name} must be a number from 0 to {MAX_WEIGHT:g}, not {text[:40]!r}")
        elif name in stated:
            faults.add(path, f"names {name} twice")
        else:
            stated[name] = weight
    if stated and not any((asdict(Weights()) | stated).values()):
        faults.add(path, "must leave at least one weight above 0")
        return ()
    return tuple(stated.items())


def _entries(annotations: object, key: str) -> list[str]:
    text = annotations.get(key) if isinstance(annotations, Mapping) else None
    return [entry for entry in text.split(",") if entry.strip()] if isinstance(text, str) else []


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if math.isfinite(weight) and 0 <= weight <= MAX_WEIGHT else None
