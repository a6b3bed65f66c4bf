"""Labels and taints that people put on clusters, checked with Kubernetes' own rules before they are kept."""

import re
from collections.abc import Iterator, Mapping, Sequence

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
DRAIN = ("convoy.dev/drained", "NoExecute")
"""Key and effect of the taint that is the drain, put there by the fleet's own verb or with kubectl."""
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_CLUSTER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

_ANNOTATIONS = 256 * 1024
"""Bytes all annotations of an object may have, as in Kubernetes."""

Fault = tuple[str, str]
"""A field's path and what is wrong with it."""


def cluster_name_fault(name: str) -> str:
    if _CLUSTER.fullmatch(name):
        return ""
    return "must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit"


def key_fault(key: object) -> str:
    if not isinstance(key, str) or not key:
        return "must be text"
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return f"{key!r}: the part before '/' must be a DNS name"
    return "" if _NAME.fullmatch(name) else f"{key!r} must be letters, digits, '-', '_' and '.', at most 63"


def value_fault(value: object) -> str:
    if isinstance(value, str) and (not value or _NAME.fullmatch(value)):
        return ""
    return f"{value!r} must be text of at most 63 letters, digits, '-', '_' and '.'"


def label_faults(labels: Mapping[str, object]) -> Iterator[Fault]:
    for key, value in labels.items():
        fault = key_fault(key) or value_fault(value)
        if fault:
            yield f"labels.{key}", fault


def annotation_faults(annotations: Mapping[str, object]) -> Iterator[Fault]:
    for key, value in annotations.items():
        if fault := key_fault(key) or ("" if isinstance(value, str) else "must be text"):
            yield f"annotations.{key}", fault
    if sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) > _ANNOTATIONS:
        yield "annotations", f"must have at most {_ANNOTATIONS} bytes together"


def taint_faults(taints: Sequence[Mapping[str, object]]) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        if fault := key_fault(taint.get("key")):
            yield f"taints[{i}].key", fault
        if fault := value_fault(taint.get("value") or ""):
            yield f"taints[{i}].value", fault
        if taint.get("effect") not in EFFECTS:
            yield f"taints[{i}].effect", f"must be one of {', '.join(EFFECTS)}"
        pair = (repr(taint.get("key")), repr(taint.get("effect")))  # either may be a mapping, which has no hash
        if pair in seen:
            yield f"taints[{i}]", "repeats the key and effect of an earlier taint"
        seen.add(pair)


def is_drain(taint: Mapping[str, object]) -> bool:
    return (taint["key"], taint["effect"]) == DRAIN
