"""Predicted speed of a job where it is, or where it would go now, if the job states the size of its gradients."""

from collections.abc import Mapping
from typing import Any

from fleet.core import devices
from jobs.core.manifest_fields import Faults
from jobs.core.placement import placed_topology
from jobs.core.placement.types import Assignment
from jobs.core.topology import gpu_links, speed
from jobs.core.topology.speed import Speed
from jobs.models import Job


def of_placed(job: Job, placement: Mapping[str, Any]) -> Speed | None:
    training = speed.parse_training((job.manifest.get("metadata") or {}).get("annotations") or {}, Faults())
    request = _gpus(job)
    over = speed.bus(placement, request) if training and placement else None
    if training is None or over is None:
        return None
    return speed.predict_speed(training, speed.gpus(placement, request), *over)


def of_found(job: Job, assignment: Assignment | None) -> Speed | None:
    """None too where GPUs are yet to be chosen by their links: it depends on which."""
    by_links = any(role["request"].get(gpu_links.RESOURCE) for role in job.roles)
    return None if assignment is None or by_links else of_placed(job, placed_topology.topology_to_store(assignment))


def _gpus(job: Job) -> dict[str, int]:
    return {role["name"]: devices.count(role["request"]) for role in job.roles}
