"""Whether the scheduler may change the size of a running job by itself, within the bounds of its kind.

A job opts in, because its training has to go on by itself when workers leave and come: that is its script's doing.
"""

from collections.abc import Mapping

from jobs.core.manifest_fields import Faults

ELASTIC = "convoy.dev/elastic"
"""Annotation of a job: ``"true"`` when the scheduler may resize it while it runs."""


def is_elastic(annotations: object, faults: Faults) -> bool:
    value = annotations.get(ELASTIC) if isinstance(annotations, Mapping) else None
    faults.one_of(value, f"metadata.annotations.{ELASTIC}", ("true", "false"))
    return value == "true"
