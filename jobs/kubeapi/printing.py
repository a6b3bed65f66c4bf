"""How a job stands, as kubectl shows its kind: upstream's own columns and status fields, saying what is true in the fleet.

A member's words stay where they are words for the phase the job is in; else the kind's own word for that phase takes their
place: a job that waits again is not shown as running somewhere, and one that moves after a failure has not failed.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from fleet.kube import crds, tables
from fleet.kube.resources import Resource
from fleet.kube.server.kinds import Object
from fleet.kube.tables import AGE, Column, age
from jobs.kinds.base import Kind, Phase
from jobs.models import Job

_PHASES: Mapping[str, Phase] = {
    Job.State.RUNNING: Phase.RUNNING,
    Job.State.RECLAIMING: Phase.RUNNING,
    Job.State.BACKOFF: Phase.RESTARTING,
    Job.State.SUSPENDED: Phase.SUSPENDED,
    Job.State.SUCCEEDED: Phase.SUCCEEDED,
    Job.State.FAILED: Phase.FAILED,
}
"""Every other state is that of a job that is there and does not run."""
_OBSERVED = "observedGeneration"
_FINAL = ("Complete", "Completed", "Succeeded", "Failed")
_RUNS = ("Running", "Restarting")
_CONTRADICT: dict[Phase, tuple[str, ...]] = {
    Phase.CREATED: (*_FINAL, *_RUNS, "Suspended"),
    Phase.RUNNING: (*_FINAL, "Suspended"),
    Phase.RESTARTING: (*_FINAL, "Suspended"),
    Phase.SUSPENDED: (*_FINAL, *_RUNS),
    Phase.SUCCEEDED: ("Failed",),
    Phase.FAILED: ("Complete", "Completed", "Succeeded"),
}
"""Conditions that are not true of a job in the phase."""
_BATCH = {Phase.CREATED: "Pending", Phase.RESTARTING: "Running", Phase.SUCCEEDED: "Complete"}


def phase_of(state: str) -> Phase:
    return _PHASES.get(state, Phase.CREATED)


def with_phase(kind: Kind, status: Mapping[str, Any], phase: Phase) -> Object:
    """The status with the kind's own fields saying ``phase``, and without conditions that contradict it."""
    printed = _without_generations(status)
    for path, words in kind.phase_words.items():
        *parents, last = path.split(".")
        target = printed
        for parent in parents:
            target[parent] = dict(target.get(parent) or {})
            target = target[parent]
        if target.get(last) not in words.get(phase, ()):
            target[last] = words.get(phase, ("",))[0]
        if not target[last]:
            del target[last]
    conditions = [each for each in printed.get("conditions") or [] if isinstance(each, dict)]
    wrong = [each for each in conditions if each.get("status") == "True" and each.get("type") in _CONTRADICT[phase]]
    return {**printed, "conditions": [each for each in conditions if each not in wrong]} if wrong else printed


def _without_generations(status: Mapping[str, Any]) -> Object:
    """They are of the member's copy, and clients that compare them with the job's would wait for ever."""
    kept = {name: value for name, value in status.items() if name != _OBSERVED}
    if isinstance(conditions := status.get("conditions"), list):
        sound = [each for each in conditions if isinstance(each, dict)]
        kept["conditions"] = [{name: value for name, value in each.items() if name != _OBSERVED} for each in sound]
    return kept


def columns(resource: Resource, state: Callable[[Object], str]) -> tuple[Column, ...]:
    """Between NAME and the end."""
    if resource.group == "batch":
        return _BATCH_COLUMNS
    printed = crds.printed(resource)
    if not any("status." in each["jsonPath"] and "conditions[-1:]" not in each["jsonPath"] for each in printed):
        shown = Column("State", lambda shown, now: state(shown), description="The latest condition that is true")
        return shown, AGE
    return tuple(tables.columns_from(printed)[1:])


def clusters(convoy: Object) -> str:
    """The cluster of a job; of one that is divided, all that have a share."""
    return ",".join(convoy.get("clusters") or ()) or str(convoy.get("cluster") or "")


def size(convoy: Object) -> str:
    """``worker 4 (2-8)``: the pods of each role that can be resized, and its bounds; ``worker 2→4 (2-8)``: it is to grow."""
    wanted = (convoy.get("resize") or {}).get("sizes") or {}
    shown = []
    for role, each in (convoy.get("size") or {}).items():
        grows = f"→{wanted[role]}" if role in wanted else ""
        most = "" if each["max"] is None else each["max"]
        shown.append(f"{role} {each['replicas']}{grows} ({each['min']}-{most})")
    return ", ".join(shown)


def progress(convoy: Object) -> str:
    """``64/3000 (2%)``, as the training reports it."""
    stated = convoy.get("progress") or {}
    steps = "/".join(str(stated[part]) for part in ("step", "total") if part in stated)
    percent = f"{stated['percent']}%" if "percent" in stated else ""
    return f"{steps} ({percent})" if steps and percent else steps or percent


def _batch_status(shown: Object, _now: datetime) -> str:
    phase = phase_of(shown["status"]["convoy"]["state"])
    return _BATCH.get(phase, phase.value)


def _completions(shown: Object, _now: datetime) -> str:
    spec, done = shown.get("spec") or {}, shown["status"].get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism") or 1
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(shown: Object, now: datetime) -> str:
    status = shown["status"]
    if not (start := status.get("startTime")):
        return ""
    return age(start, datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now)


_BATCH_COLUMNS = (
    Column("Status", _batch_status),
    Column("Completions", _completions),
    Column("Duration", _duration),
    AGE,
)
