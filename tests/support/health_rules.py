"""What GitOps controllers make of an object, restated from their published rules.

Argo CD 3: its check of batch Jobs, which is Go, and its script of SparkApplications. Flux: kstatus, its library. A field that a
rule reads without asking for it must be there: a script that fails makes an application's health unknown.
"""

from typing import Any


def argo_batch_job(obj: dict[str, Any]) -> str:
    """A condition counts by being there, but for Suspended, whose status is asked as well."""
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or []}
    if not conditions.keys() & {"Failed", "Complete", "Suspended"}:
        return "Progressing"
    if "Failed" in conditions:
        return "Degraded"
    return "Suspended" if conditions.get("Suspended") == "True" else "Healthy"


def argo_spark(obj: dict[str, Any]) -> str:
    state = obj["status"]["applicationState"].get("state")
    if state == "RUNNING":
        executors = obj["status"].get("executorState")
        running = sum(each == "RUNNING" for each in (executors or {}).values())
        all_run = executors is not None and running == obj["spec"]["executor"]["instances"]
        return "Healthy" if all_run else "Progressing"
    if state in ("FAILED", "SUBMISSION_FAILED", "FAILING"):
        return "Degraded"
    return "Healthy" if state == "COMPLETED" else "Progressing"


def flux_generic(obj: dict[str, Any]) -> str:
    """Of kinds that kstatus has no rule for: generation, then the standard conditions; without them it is Current."""
    if (observed := obj["status"].get("observedGeneration")) is not None and observed != obj["metadata"]["generation"]:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or []}
    if conditions.get("Reconciling") == "True" or conditions.get("Ready") in ("False", "Unknown"):
        return "InProgress"
    return "Failed" if conditions.get("Stalled") == "True" else "Current"


def flux_batch_job(obj: dict[str, Any]) -> str:
    """A Job is Current as soon as it has begun, Failed by its condition, and in progress before."""
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or []}
    if conditions.get("Failed") == "True":
        return "Failed"
    if "True" in (conditions.get("Complete"), conditions.get("Suspended")):
        return "Current"
    return "Current" if obj["status"].get("startTime") else "InProgress"
