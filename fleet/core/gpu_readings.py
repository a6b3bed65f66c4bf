"""Reads what a dcgm-exporter prints of its node's GPUs: use, memory, power, temperature, and the pod that has each of them.

The text is anybody's who can start a pod with the exporter's labels: only known metrics are read, of so many GPUs, with values
in bounds; everything else is left out, and nothing raises. Knows no cluster and no job.
"""

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

MOST_GPUS = 128
"""Of one node, instances of divided GPUs included."""
_LONGEST_LINE, _LONGEST_LABEL = 4096, 253
_MOST_LINES = 8 * MOST_GPUS
_MOST_BYTES = 2**19
"""Of the known metrics."""
_SAMPLE = re.compile(
    r'\w+\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}\s+(?P<value>[0-9.eEinfaNIF+-]+)(?:\s+-?\d+)?\s*', re.DOTALL
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MIB = 2.0**24
_FIELDS: Mapping[str, tuple[str, float, float]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilization", 1.0, 100.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("engine", 100.0, 100.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used", 1.0, _MIB),
    "DCGM_FI_DEV_FB_FREE": ("memory_free", 1.0, _MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("power", 1.0, 1e5),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", 1.0, 1000.0),
}
"""Metric -> field, factor and the greatest value. What DCGM does not know it prints as a number beyond any of these."""
_IDENTITY = ("uuid", "model", "namespace", "pod", "container")
_LABELS: Mapping[str, tuple[str, ...]] = {
    "uuid": ("UUID",),
    "model": ("modelName",),
    "namespace": ("namespace", "pod_namespace"),
    "pod": ("pod", "pod_name"),
    "container": ("container", "container_name"),
}
"""Field -> labels, the second as the exporter has it with its older names."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU, or one instance of a divided one, at one moment. None: not known."""

    gpu: str
    """Its index on the node, such as ``3``; of an instance with its own number, such as ``3/7``."""
    uuid: str = ""
    model: str = ""
    utilization: float | None = None
    """Percent of the time in which it computed anything."""
    memory_used: float | None = None
    """MiB."""
    memory_total: float | None = None
    power: float | None = None
    """W."""
    temperature: float | None = None
    """Degrees Celsius."""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    idle_since: str = ""
    """ISO 8601: since when it has been idle without a pause, with the same pod. Empty: it is not, or has no pod."""

    @property
    def owner(self) -> tuple[str, str]:
        return self.namespace, self.pod


def parse(text: bytes, is_over: Callable[[], bool] = lambda: False) -> list[Reading]:
    """The GPUs in the order of their index; empty if the text has none. Ends early when ``is_over``."""
    values: dict[str, dict[str, float]] = {}
    identities: dict[str, dict[str, str]] = {}
    for metric, labels, number in _samples(text, is_over):
        name, factor, greatest = _FIELDS[metric]
        gpu, value = _gpu(labels), number * factor
        if not gpu or (gpu not in values and len(values) >= MOST_GPUS):
            continue
        known = values.setdefault(gpu, {})
        if math.isfinite(value) and 0 <= value <= greatest:
            known.setdefault(name, round(value, 1))
        identity = identities.setdefault(gpu, {})
        identity.update({key: text for key, text in _identity(labels) if text and not identity.get(key)})
    return [_reading(gpu, values[gpu], identities[gpu]) for gpu in sorted(values, key=_order)]


def _samples(text: bytes, is_over: Callable[[], bool]) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels and value of known metrics that can be read, in time that grows with the text and no faster."""
    count, length = 0, 0
    for line in io.BytesIO(text):
        name = line.partition(b"{")[0].decode("latin-1")
        if name not in _FIELDS or len(line) > _LONGEST_LINE:
            continue
        count, length = count + 1, length + len(line)
        if count > _MOST_LINES or length > _MOST_BYTES or is_over():
            return
        sample = _SAMPLE.fullmatch(line.decode("utf-8", "replace"))
        value = None if sample is None else _number(sample["value"])
        if sample is not None and value is not None:
            labels = {key: _ESCAPED.sub(_unescaped, quoted) for key, quoted in _LABEL.findall(sample["labels"])}
            yield name, labels, value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except (ValueError, OverflowError):
        return None


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _gpu(labels: Mapping[str, str]) -> str:
    index, instance = labels.get("gpu", ""), labels.get("GPU_I_ID", "")
    if not _is_number(index) or (instance and not _is_number(instance)):
        return ""
    return f"{index}/{instance}" if instance else index


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


def _order(gpu: str) -> list[int]:
    return [int(part) for part in gpu.split("/")]


def _identity(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in _IDENTITY:
        text = next((labels[name] for name in _LABELS[key] if labels.get(name)), "")
        if len(text) <= _LONGEST_LABEL and text.isprintable():
            yield key, text


def _reading(gpu: str, values: dict[str, float], identity: dict[str, str]) -> Reading:
    used, free = values.get("memory_used"), values.get("memory_free")
    return Reading(
        gpu,
        utilization=values.get("utilization", values.get("engine")),
        memory_used=used,
        memory_total=None if used is None or free is None else used + free,
        power=values.get("power"),
        temperature=values.get("temperature"),
        **identity,
    )


def carry_idle(
    readings: Iterable[Reading], before: Iterable[Reading], now: datetime, *, threshold: float
) -> list[Reading]:
    """The readings with since when each GPU has been idle.

    ``before`` are those of the last time; none of them if that is so long ago that it is not known what was meanwhile.
    """
    earlier = {reading.gpu: reading for reading in before}
    return [_idle(reading, earlier.get(reading.gpu), now, threshold) for reading in readings]


def _idle(reading: Reading, before: Reading | None, now: datetime, threshold: float) -> Reading:
    if not reading.pod or reading.utilization is None or reading.utilization > threshold:
        return replace(reading, idle_since="")
    same = before is not None and before.owner == reading.owner and before.uuid == reading.uuid
    since = before.idle_since if same and before is not None else ""
    return replace(reading, idle_since=since or now.isoformat())


def stored(readings: Iterable[Reading]) -> list[dict[str, Any]]:
    """As rows keep them: only what is known."""
    return [{name: value for name, value in asdict(each).items() if value not in ("", None)} for each in readings]


def loaded(rows: Iterable[Mapping[str, Any]]) -> list[Reading]:
    return [Reading(**row) for row in rows]


def idle_for(reading: Reading, now: datetime) -> timedelta:
    """For how long it has been idle; zero if it is not."""
    if not reading.idle_since:
        return timedelta()
    return max(timedelta(), now - datetime.fromisoformat(reading.idle_since))
