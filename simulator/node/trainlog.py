"""The log of a pod that only pretends to train: lines that follow from its name and how long it has run. Pure."""

import math
import zlib
from collections.abc import Iterator
from heapq import merge

from simulator.machinery.clock import stamp
from simulator.node.training import Training

STEP_S = 5.0
"""Simulated seconds between two lines."""


def lines(pod: str, *, started: float, until: float, step_real_s: float) -> Iterator[str]:
    """The lines written from ``started`` to ``until``, one a step; the same for the same pod and start."""
    noise = zlib.crc32(pod.encode())
    yield f"{stamp(started)} INFO {pod}: joined the process group"
    step = 1
    while (at := started + step * step_real_s) <= until:
        wobble = ((noise >> (step % 24)) & 15) / 400
        loss = 1.8 + 9.0 / math.sqrt(step + 1) + wobble
        rate = 11800 + (noise + step * 7919) % 900
        yield f"{stamp(at)} INFO {pod}: step={step * 10} loss={loss:.4f} tokens/s={rate}"
        step += 1


def of_training(training: Training, pod: str, *, started: float, until: float, step_real_s: float) -> Iterator[str]:
    """The steps of a job as one of its pods sees them, and which workers came and left. What was once written stays."""
    marks = ((at, f"INFO {pod}: {words}") for at, words in list(training.marks) if at <= until)
    written = merge(_steps(training, pod, started, until, step_real_s), marks)
    yield from (f"{stamp(at)} {words}" for at, words in written if at >= started)


def _steps(
    training: Training, pod: str, started: float, until: float, step_real_s: float
) -> Iterator[tuple[float, str]]:
    yield started, f"INFO {pod}: joined the process group at step {int(training.step_at(started))}"
    count = 1
    while (at := started + count * step_real_s) <= until:
        count += 1
        if workers := training.workers_at(at):
            step = int(training.step_at(at))
            loss = 1.8 + 9.0 / math.sqrt(step + 1)
            yield at, f"INFO {pod}: step={step} loss={loss:.4f} workers={workers}"
