"""The log of a pod that only pretends to train: lines that follow from its name and how long it has run. Pure."""

import math
import zlib
from collections.abc import Iterator

from simulator.machinery.clock import stamp

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
