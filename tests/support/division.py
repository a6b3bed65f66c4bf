"""A job whose workers are divided over members by the room each has."""

from collections.abc import Mapping
from typing import Any

import yaml
from django.utils import timezone

from jobs.core.reasons import Code, Reason
from jobs.models import Job
from jobs.services.follow import division_status
from jobs.services.follow.division_status import PodsSeen
from tests.support.world import World

DIVIDED = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: over-clusters}
spec:
  priority: 1
  failover: {cluster: {purgeMode: Gracefully}, application: {decisionConditions: {tolerationSeconds: 0}}}
  placement: {replicaScheduling: {replicaSchedulingType: Divided, %s}}
  resourceSelectors: [{apiVersion: batch/v1, kind: Job}]
"""

BY_ROOM = DIVIDED % "replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"


def sweep_job(name: str = "sweep", *, pods: int, completions: int = 0, duration: str = "", **spec: object) -> str:
    notes = {"convoy.dev/duration": duration} if duration else {}
    container = {"name": "main", "image": "example.com/sweep", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"annotations": notes}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    counted = {"completions": completions} if completions else {}
    body = {"parallelism": pods, **counted, "template": template, **spec}
    return yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body})


def report_share(attempt: int, status: Mapping[str, Any], running: int = 0, **pods: Any) -> Job:
    """The member reports this of the share, and so many of its pods run."""
    job = Job.objects.select_related("policy").get()
    division_status.report(job, attempt, dict(status), PodsSeen(running, **pods), timezone.now())
    return Job.objects.get()


def copies(world: World, *names: str) -> dict[str, list[tuple[int, int | None]]]:
    found = {name: world.clients[name].list("/apis/batch/v1/jobs")["items"] for name in names or world.members}
    return {
        name: [(each["spec"]["parallelism"], each["spec"].get("completions")) for each in items]
        for name, items in found.items()
    }


FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]}

MOST = "spreadConstraints: [{spreadByField: cluster, maxGroups: 2}]"

SPREAD = BY_ROOM.replace("{replicaScheduling", f"{{{MOST}, replicaScheduling")

NO_FAILOVER = "\n".join(line for line in SPREAD.splitlines() if "failover" not in line)

LOST = Reason(Code.CLUSTER_LOST, "it is gone")
