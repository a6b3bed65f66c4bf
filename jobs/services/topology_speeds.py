"""The speed that is foretold for a job where it is, or where it would go now, if the job tells what its model weighs."""

from collections.abc import Mapping
from typing import Any

from jobs.core import topology_boards, topology_placed, topology_speed
from jobs.core.faults import Faults
from jobs.core.placing.facts import Assignment
from jobs.core.topology_speed import Speed
from jobs.models import Job


def of_placed(job: Job, placement: Mapping[str, Any]) -> Speed | None:
    training = topology_speed.read((job.manifest.get("metadata") or {}).get("annotations") or {}, Faults())
    asked = _gpus(job)
    over = topology_speed.bus(placement, asked) if training and placement else None
    if training is None or over is None:
        return None
    return topology_speed.foretold(training, topology_speed.gpus(placement, asked), *over)


def of_found(job: Job, found: Assignment | None) -> Speed | None:
    """None too where GPUs are yet to be chosen by their links: it depends on which."""
    by_links = any(role["request"].get(topology_boards.RESOURCE) for role in job.roles)
    return None if found is None or by_links else of_placed(job, topology_placed.kept(found))


def _gpus(job: Job) -> dict[str, int]:
    return {
        role["name"]: sum(amount for name, amount in role["request"].items() if name.endswith("/gpu"))
        for role in job.roles
    }
