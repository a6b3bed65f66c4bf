"""The annotations of a pod that are kept for the later attempts of its job: those that the pod itself names in `PRESERVE`.

Convoy writes that list when it sends a job whose policy preserves annotations. Only the first pod of each role is read.
"""

import json
from collections.abc import Mapping
from typing import Any

PRESERVE = "convoy.dev/preserve"
"""Annotation of pods: ``key,key``, the annotations to keep."""
MAX_KEYS = 16
MAX_BYTES = 64 * 1024
"""Of all preserved values of a job: they are repeated in the job's object and in the pods of each role. Kubernetes allows
256 KiB of annotations and about 1.5 MiB for an object, and Linux 128 KiB for one environment variable."""


def read(annotations: Mapping[str, Any], index: int) -> str:
    """The kept annotations as JSON; empty when there are none. An annotation that is too long has the value null."""
    keys = annotations.get(PRESERVE)
    if index or not isinstance(keys, str) or not keys:
        return ""
    kept: dict[str, str | None] = {}
    size = 0
    for key in keys.split(",")[:MAX_KEYS]:
        value = annotations.get(key)
        if key and isinstance(value, str):
            size += len(value.encode("utf-8", "replace"))
            kept[key] = value if size <= MAX_BYTES else None
    return json.dumps(kept, separators=(",", ":"), sort_keys=True) if kept else ""


def parse(kept: str) -> dict[str, str | None]:
    annotations: dict[str, str | None] = json.loads(kept) if kept else {}
    return annotations
