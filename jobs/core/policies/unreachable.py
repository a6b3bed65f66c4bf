"""Whether a job is started elsewhere while its copy may still run in a cluster that does not answer; pure."""

from collections.abc import Mapping

from jobs.core.manifest_fields import Faults

UNREACHABLE = "convoy.dev/unreachable-cluster"
"""Annotation of a policy. ``Replace`` (default) accepts that two copies run until the cluster answers; ``Wait`` does not."""
_REPLACE, _WAIT = "Replace", "Wait"


def waits(annotations: object, faults: Faults) -> bool:
    value = annotations.get(UNREACHABLE) if isinstance(annotations, Mapping) else None
    faults.one_of(value, f"metadata.annotations.{UNREACHABLE}", (_REPLACE, _WAIT))
    return value == _WAIT
