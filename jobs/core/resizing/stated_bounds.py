"""Between which numbers of pods the roles of a job may be resized, where its kind has no fields to say so: an annotation."""

from collections.abc import Mapping

from jobs.core.manifest_fields import Faults, Manifest

BOUNDS = "convoy.dev/bounds"
"""``worker=1:8,ps=1:2``: by role the fewest and the most pods."""
FIELD = f"metadata.annotations[{BOUNDS}]"
_MOST_PODS = 2**31 - 1


def read(manifest: Manifest, faults: Faults) -> dict[str, tuple[int, int]]:
    """By role its min and max; empty where the annotation is missing or wrong."""
    metadata = manifest.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = notes.get(BOUNDS) if isinstance(notes, dict) else None
    if text is None:
        return {}
    limits: dict[str, tuple[int, int]] = {}
    for entry in str(text).split(","):
        role, _, between = (word.strip() for word in entry.partition("="))
        least, _, most = between.partition(":")
        if role in limits or not (_is_count(least) and _is_count(most) and 1 <= int(least) <= int(most)):
            faults.add(FIELD, f"must be like worker=1:8, each role once, its min from 1 to its max, not {entry!r}")
            return {}
        limits[role] = (int(least), int(most))
    return limits


def check(manifest: Manifest, replicas: Mapping[str, int], faults: Faults) -> None:
    """Adds what is wrong with the annotation, by the roles that the job has."""
    for role, (least, most) in read(manifest, faults).items():
        if role not in replicas:
            faults.add(FIELD, f"names {role}, which is no role of the job; its roles are {', '.join(replicas)}")
        elif not least <= replicas[role] <= most:
            faults.add(FIELD, f"{role} must have from {least} to {most} pods, not {replicas[role]}")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= _MOST_PODS
