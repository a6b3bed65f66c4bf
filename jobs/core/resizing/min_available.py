"""How many pods have to be available at once while their number changes: what was stated, or all there are. Pure.

A number that was stated is cut where there are fewer pods, and then looks as if all were meant. An annotation remembers it for
that while alone, so that a job that is back at its size has the manifest that was submitted.
"""

from collections.abc import Mapping

from jobs.core.manifest_fields import Manifest

STATED = "convoy.dev/min-available"
"""``spec=4,task worker=all``: of the job and of its tasks, where the field does not say it."""
ALL = 2**31
_ALL_TEXT = "all"


def read(manifest: Manifest) -> dict[str, int]:
    """What is remembered; nothing where the annotation makes no sense."""
    notes = manifest["metadata"].get("annotations")
    text = notes.get(STATED) if isinstance(notes, dict) else None
    entries = [entry.rpartition("=") for entry in str(text or "").split(",")]
    known = {name: ALL if value == _ALL_TEXT else _number(value) for name, _, value in entries}
    return {name: value for name, value in known.items() if name and value}


def write(manifest: Manifest, stated: Mapping[str, int]) -> None:
    """Remembers this, and nothing else."""
    before = manifest["metadata"].get("annotations") or {}
    after = {name: text for name, text in before.items() if name != STATED}
    if stated:
        entries = {name: _ALL_TEXT if value == ALL else str(value) for name, value in stated.items()}
        after[STATED] = ",".join(f"{name}={value}" for name, value in sorted(entries.items()))
    if after != before:
        manifest["metadata"]["annotations"] = after


def implied(least: int, pods: int, default: int) -> int:
    """What the field says by itself. ``default``: what stands there where nothing was stated; 0: all pods."""
    return ALL if least == pods != default else least


def stated(least: int, pods: int, default: int, remembered: int | None) -> int:
    """What is remembered counts unless the field was changed since."""
    if remembered is not None and min(remembered, pods) == least:
        return remembered
    return implied(least, pods, default)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
