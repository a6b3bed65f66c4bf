"""How far a training is, as it reports itself by Kubeflow Trainer's status protocol (KEP-2779), and as its copy carries it.

A tenant writes the reports: they are shown, and decide nothing but whether an exit 0 after a notice is the job's end. The
record on a copy names the copy's uid, so that an annotation that came with a manifest says nothing.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.runtime.notices import seconds, stamp

PROGRESS = "convoy.dev/progress"
"""Annotation of a copy: its latest report."""
TOKEN_DIGEST = "convoy.dev/report-token"  # noqa: S105 - the name of an annotation
"""Annotation of a copy: the SHA-256 of the token by which its pods report, in hexadecimal."""
MOST_BYTES = 64 * 1024
MOST_METRICS = 256
LONGEST_WORD = 64
"""Characters of the name and of the value of a metric."""
_LONGEST_RECORD = 1024
_MOST = 2**53
_TICK_S = 0.001
"""As fine as a time is written."""
_STEP = ("current_step", "global_step", "step")
_TOTAL = ("total_steps", "max_steps")


class Unprocessable(ValueError):
    """A report that is not as the protocol says. The text names the field, its value and the remedy."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Times are seconds since the epoch."""

    at: float
    step: int | None = None
    total: int | None = None
    percent: int | None = None
    """As it was reported."""
    eta_s: int | None = None
    loss: float | None = None
    world_size: int | None = None
    saved_step: int | None = None
    """The step of its last checkpoint."""
    claimed_at: float | None = None
    """When it first reported 100 %."""

    @property
    def has_all_steps(self) -> bool:
        return self.step is not None and bool(self.total) and self.step >= (self.total or 0)

    def is_complete(self, asked_at: float) -> bool:
        """Whether the training had reached its end by itself, although it was asked to stop at that time.

        transformers reports 100 % at the end of every training, also of one that a signal has ended at step 64 of 3,000. So
        100 % counts only from before the notice; after it, the steps count.
        """
        return self.has_all_steps or (self.claimed_at is not None and self.claimed_at < asked_at)

    def says_whether_complete(self, asked_at: float) -> bool | None:
        """The same; None where no steps of a total say that it is not."""
        return self.is_complete(asked_at) or (False if self.step is not None and self.total else None)

    def written(self, uid: str) -> str:
        """The text of the annotation of the copy with this uid."""
        record: dict[str, Any] = {"uid": uid, "at": stamp(self.at), "step": self.step, "total": self.total}
        record |= {"percent": self.percent, "eta": self.eta_s, "loss": self.loss, "world": self.world_size}
        record |= {"saved": self.saved_step, "claimed": None if self.claimed_at is None else stamp(self.claimed_at)}
        return json.dumps({name: value for name, value in record.items() if value is not None}, separators=(",", ":"))


def read(text: object, uid: str) -> Progress | None:
    """The record of the copy with this uid; None: there is none, or it is not about this copy."""
    if not isinstance(text, str) or len(text) > _LONGEST_RECORD:
        return None
    try:
        record = json.loads(text)
        if not isinstance(record, dict) or record.get("uid") != uid or not uid:
            return None
        return Progress(
            seconds(record["at"]),
            _whole(record.get("step")),
            _whole(record.get("total")),
            _percent(record.get("percent")),
            _whole(record.get("eta")),
            _finite(record.get("loss")),
            _whole(record.get("world")),
            _whole(record.get("saved")),
            None if record.get("claimed") is None else seconds(record["claimed"]),
        )
    except (KeyError, ValueError, RecursionError):
        return None


def received(body: bytes, before: Progress | None, now: float) -> Progress:
    """The progress after a report. What it does not say stays as it was; raises Unprocessable.

    It is always newer than that before, also where a clock was ahead then: else it would be kept from the fleet.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise Unprocessable('the body is no JSON document: send {"trainerStatus": {...}}') from e
    status = document.get("trainerStatus") if isinstance(document, dict) else None
    if not isinstance(status, dict):
        raise Unprocessable("trainerStatus: is required, and has to be an object")
    percent = _between(status, "progressPercentage", 100)
    eta_s = _between(status, "estimatedRemainingSeconds", 2**31 - 1)
    metrics = _metrics(status.get("metrics"))
    at = now if before is None else max(now, before.at + _TICK_S)
    before = before or Progress(now)
    step, total = (_first(metrics, names) for names in (_STEP, _TOTAL))
    claimed = percent == 100 or (percent is None and before.percent == 100)
    return Progress(
        at,
        before.step if step is None else step,
        before.total if total is None else total,
        before.percent if percent is None else percent,
        eta_s,
        _number(metrics["loss"]) if "loss" in metrics else before.loss,
        _first(metrics, ("world_size",)) or before.world_size,
        before.saved_step if "saved_step" not in metrics else _first(metrics, ("saved_step",)),
        (before.claimed_at or now) if claimed else None,
    )


def _between(status: Mapping[str, Any], field: str, most: int) -> int | None:
    value = status.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Unprocessable(f"trainerStatus.{field}: {str(value)[:40]!r} has to be a whole number from 0 to {most}")
    return value


def _metrics(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, list):
        raise Unprocessable("trainerStatus.metrics: has to be a list of {name, value}")
    if len(value) > MOST_METRICS:
        raise Unprocessable(f"trainerStatus.metrics: has {len(value)} entries, and may have {MOST_METRICS}: send fewer")
    metrics: dict[str, str] = {}
    for n, metric in enumerate(value):
        words = [metric.get(part) if isinstance(metric, dict) else None for part in ("name", "value")]
        for part, word in zip(("name", "value"), words, strict=True):
            if not isinstance(word, str) or not 1 <= len(word) <= LONGEST_WORD:
                raise Unprocessable(
                    f"trainerStatus.metrics[{n}].{part}: has to be a text of 1 to {LONGEST_WORD} characters"
                )
        metrics[str(words[0])] = str(words[1])
    return metrics


def _first(metrics: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    """The first of these metrics that is a whole number."""
    for name in names:
        text = metrics.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 16:
            return int(text)
    return None


def _number(text: str) -> float | None:
    try:
        return _finite(float(text))
    except ValueError:
        return None


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None


def _percent(value: object) -> int | None:
    percent = _whole(value)
    return percent if percent is not None and percent <= 100 else None
