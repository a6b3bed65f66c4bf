"""Formats amounts and times for people. No I/O; the current time is an argument."""

from collections.abc import Mapping
from datetime import UTC, datetime

NONE = "<none>"
GPU = "nvidia.com/gpu"
_STEPS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))


def duration(seconds: float) -> str:
    """``44s``, ``3m44s``, ``5h2m``, ``4d3h``: at most two units, and only days from ten days on."""
    whole = max(0, int(seconds))
    if whole >= 10 * 86_400:
        return f"{whole // 86_400}d"
    for size, unit, part, part_unit in _STEPS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{unit}" + (f"{rest}{part_unit}" if rest else "")
    return f"{whole}s"


def moment(text: str | None) -> datetime | None:
    """Parses a time as the API writes it. None for an empty one."""
    if not text:
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def age(text: str | None, now: datetime) -> str:
    at = moment(text)
    return NONE if at is None else duration((now - at).total_seconds())


def between(start: str | None, end: str | None, now: datetime) -> str:
    """How long something took, or has taken until now. Empty if it has not begun."""
    began = moment(start)
    return "" if began is None else duration(((moment(end) or now) - began).total_seconds())


def stamp(text: str | None) -> str:
    at = moment(text)
    return NONE if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def amount(resource: str, value: int) -> str:
    """An amount in the usual unit of its resource: milli-CPU as cores, bytes as Ki to Ti."""
    if resource == "cpu":
        return f"{value / 1000:g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return size(value)
    return str(value)


def size(value: int) -> str:
    for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if abs(value) >= 1024**power:
            return f"{value / 1024**power:.4g}{unit}"
    return str(value)


def amounts(values: Mapping[str, int]) -> str:
    """Several amounts, devices first: ``3 nvidia.com/gpu, 3 cpu, 6Gi memory``."""
    ordered = sorted((name for name in values if values[name]), key=lambda name: ("/" not in name, name))
    return ", ".join(f"{amount(name, values[name])} {name}" for name in ordered) or NONE


def seconds(text: str) -> float:
    """Parses ``60s``, ``1m30s``, ``2h`` or a number of seconds. Raises ValueError for anything else."""
    if text.replace(".", "", 1).isdigit():
        return float(text)
    total, digits, sizes = 0.0, "", {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    for character in text:
        if character.isdigit() or character == ".":
            digits += character
        elif character in sizes and digits:
            total, digits = total + float(digits) * sizes[character], ""
        else:
            raise ValueError(text)
    if digits or not text:
        raise ValueError(text)
    return total


def pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items())) or NONE
