"""How fast a job trains where it is, foretold from what its gradients weigh and what its ring goes over.

What a model is comes from its name, for the two that were measured, or from the job's own annotations. A forecast of the
network's part alone: loading of data, stragglers and the rest are not known here. It must not know clusters or members.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.core.manifest_fields import Faults
from jobs.core.topology.gpu_sets import Board
from jobs.core.topology.network import Step

MODEL, SECONDS, BYTES, BATCH = (
    f"convoy.dev/{word}" for word in ("model", "step-seconds", "gradient-bytes", "batch-per-gpu")
)
PEERLESS = 2.25
"""GB/s between pods of one node whose GPUs cannot reach each other; fitted to both models that were measured."""
NODES_APART = 0.85
"""GB/s between nodes over ethernet, from the same two models split over two."""
ONE_POD = 10.0
"""GB/s inside one pod on a node whose links are not known: PCIe."""
DGX1 = Board(
    (
        (0, 1, 1, 2, 2, 0, 0, 0), (1, 0, 2, 1, 0, 2, 0, 0), (1, 2, 0, 2, 0, 0, 1, 0), (2, 1, 2, 0, 0, 0, 0, 1),
        (2, 0, 0, 0, 0, 1, 1, 2), (0, 2, 0, 0, 1, 0, 2, 1), (0, 0, 1, 0, 1, 2, 0, 2), (0, 0, 0, 1, 2, 1, 2, 0),
    ),
    sockets=(0, 0, 0, 0, 1, 1, 1, 1),
)  # fmt: skip
"""The board the two models were measured on."""


@dataclass(frozen=True, slots=True)
class Training:
    """A step, and how many samples one GPU has in it; 0: not given."""

    step: Step
    batch: int = 0


MODELS: Mapping[str, Training] = {
    "vgg16": Training(Step(64 / 205.1, 4 * 138_357_544), 64),
    "resnet50": Training(Step(64 / 330.5, 102.2e6), 64),
}


@dataclass(frozen=True, slots=True)
class Speed:
    """``per_gpu`` and ``total`` are samples a second, or steps where the batch is not given."""

    over: str
    gbs: float
    step_s: float
    per_gpu: float
    total: float
    speedup: float
    """Over the slowest place, nodes apart."""


def predict_speed(training: Training, gpus: int, over: str, gbs: float) -> Speed:
    seconds = training.step.takes_s(gpus, gbs) if gpus > 1 else training.step.seconds
    each = (training.batch or 1) / seconds
    faster = training.step.speedup(gpus, gbs, NODES_APART) if gpus > 1 else 1.0
    return Speed(over, gbs, round(seconds, 4), round(each, 1), round(each * gpus, 1), round(faster, 3))


def places(gpus: int) -> list[tuple[str, float]]:
    """Where so many GPUs can be, fastest first, with GB/s."""
    best = DGX1.best(range(len(DGX1.links)), gpus)
    ring = (
        [(f"NVLink ring of GPUs {','.join(map(str, best))} of a DGX-1", DGX1.ring(best))] if best and gpus > 1 else []
    )
    return [
        *ring,
        ("PCIe of one pod", ONE_POD),
        ("one node, no GPU peer-to-peer", PEERLESS),
        ("two nodes", NODES_APART),
    ]


def bus(placement: Mapping[str, Any], request: Mapping[str, int]) -> tuple[str, float] | None:
    """What the ring of a placed gang goes over, by what one pod of each role asks of GPUs; None for less than two."""
    runs = [
        (node, pods) for role, each in placement.get("nodes", {}).items() if request.get(role) for node, pods in each
    ]
    pods, nodes = sum(pods for _, pods in runs), {node for node, _ in runs}
    if not runs or gpus(placement, request) < 2:
        return None
    if len(nodes) > 1:
        return f"{len(nodes)} nodes", NODES_APART
    if placement.get("gpus"):
        [node] = nodes
        taken = ",".join(map(str, placement["gpus"].get(node, ())))
        return f"the links of GPUs {taken} of {node}", float(placement["ring_gbs"])
    return ("one pod", ONE_POD) if pods == 1 else ("one node, no GPU peer-to-peer", PEERLESS)


def gpus(placement: Mapping[str, Any], request: Mapping[str, int]) -> int:
    return sum(pods * request.get(role, 0) for role, runs in placement.get("nodes", {}).items() for _, pods in runs)


def parse_training(notes: Mapping[str, Any], faults: Faults) -> Training | None:
    """What a job's annotations say of its model; None when they say nothing."""
    path = "metadata.annotations"
    known, measured = notes.get(MODEL), {key: notes[key] for key in (SECONDS, BYTES, BATCH) if key in notes}
    numbers = {key: _number(value, f"{path}.{key}", faults) for key, value in measured.items()}
    if SECONDS in numbers and BYTES in numbers:
        return Training(Step(numbers[SECONDS], numbers[BYTES]), int(numbers.get(BATCH, 0)))
    if known is None:
        for key in measured.keys() & {SECONDS, BYTES}:
            faults.add(f"{path}.{key}", f"says nothing without {BYTES if key == SECONDS else SECONDS}")
        return None
    return MODELS.get(str(known).lower())


def _number(value: object, path: str, faults: Faults) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e15:
        faults.add(path, f"must be a number above 0, not {value!r}")
        return 1.0
    return number
