"""Durations as a manifest states them: ``90s``, ``10m``, ``1h30m``, ``7d``."""

import re
from datetime import timedelta

_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)
FORMAT = "a duration such as 90s, 10m, 1h30m or 2d"


def parse_duration(value: object) -> timedelta | None:
    """The duration; None for what is none."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """As `parse_duration` reads it, in whole seconds."""
    seconds = int(duration.total_seconds())
    parts = (seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"
