"""The life of one pod as its kubelet reports it: what the annotations ask for, and the status documents of each step. Pure.

Annotations of a pod: ``convoy.dev/duration`` ("90s", simulated), ``convoy.dev/exit-code`` ("1"),
``convoy.dev/exit-code-times`` ("2": fails that often, then ends with 0), ``convoy.dev/run`` ("process": a real process).
``convoy.dev/end`` ("1 words"), written on a running pod, ends it with that code, as its own program would have.
Without a duration a pod of a Job or a training job runs 10 simulated minutes, any other until it is deleted; one that trains
by steps (`trainings`) until its job has made them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.images import RUN
from simulator.machinery.clock import stamp
from simulator.machinery.objects import Object, annotations_of, condition, owner_of
from simulator.node.initialisation import WAITING, Initialisation, missing_of

DURATION = "convoy.dev/duration"
EXIT_CODE = "convoy.dev/exit-code"
EXIT_CODE_TIMES = "convoy.dev/exit-code-times"
END = "convoy.dev/end"
STEP = "convoy.dev/step-seconds"

JOB_DURATION_S = 600.0
BACKOFF_FIRST_S, BACKOFF_MOST_S, BACKOFF_FORGET_S = 10.0, 300.0, 600.0
KILLED = 137
EVICTED = "Evicted"

_DURATION = re.compile(r"^(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?$")


@dataclass(frozen=True, slots=True)
class Behaviour:
    duration_s: float | None
    """Simulated seconds. None: it runs until it is deleted."""
    exit_code: int
    fails: int | None
    """How many runs end with the exit code before later ones end with 0. None: all runs."""
    process: bool

    def code_of_run(self, failed_before: int) -> int:
        return self.exit_code if self.fails is None or failed_before < self.fails else 0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Of a pod, and of its node."""

    pod: str
    node: str

    @property
    def of_status(self) -> Object:
        return {"podIP": self.pod, "podIPs": [{"ip": self.pod}], "hostIP": self.node}


def seconds(text: str) -> float:
    """Parses ``90s``, ``1h30m`` or a number of seconds."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    match = _DURATION.match(text)
    if not match or not text:
        raise ValueError(f"not a duration: {text!r}")
    hours, minutes, rest = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest


def behaviour(pod: Object) -> Behaviour:
    notes = annotations_of(pod)
    owner = owner_of(pod)
    brief = owner and str(owner["kind"]).endswith("Job") and STEP not in notes
    default = JOB_DURATION_S if brief else None
    times = notes.get(EXIT_CODE_TIMES)
    return Behaviour(
        duration_s=seconds(notes[DURATION]) if DURATION in notes else default,
        exit_code=int(notes.get(EXIT_CODE, "0")),
        fails=None if times is None else int(times),
        process=notes.get(RUN) == "process",
    )


def restarts(policy: str, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def backoff_s(restart: int, ran_s: float) -> float:
    """How long the next start is delayed: not at first, then 10 s doubling up to 5 min. A long run resets the delay."""
    if restart == 0 or ran_s >= BACKOFF_FORGET_S:
        return 0.0
    return float(min(BACKOFF_FIRST_S * 2 ** min(restart - 1, 10), BACKOFF_MOST_S))


def running(
    pod: Object, *, now: float, where: Addresses, restart: int, last: Object | None = None, extra: Object
) -> Object:
    return _status(
        pod,
        phase="Running",
        ready=True,
        now=now,
        restart=restart,
        state={"running": {"startedAt": stamp(now)}},
        extra={**where.of_status, **extra},
        last=last,
    )


def initialising(pod: Object, *, now: float, where: Addresses, init: Initialisation, failed: bool = False) -> Object:
    """While init containers run, wait, or (``failed``) after one has failed for good."""
    return _status(
        pod,
        phase="Failed" if failed else "Pending",
        ready=False,
        now=now,
        restart=0,
        state={"waiting": {"reason": WAITING}},
        extra={**where.of_status, **init.statuses},
    )


def backing_off(pod: Object, *, now: float, restart: int, ended: Object) -> Object:
    waiting = {"reason": "CrashLoopBackOff", "message": f"back-off restarting failed container, restart {restart + 1}"}
    return _status(
        pod, phase="Running", ready=False, now=now, restart=restart, state={"waiting": waiting}, last=ended, extra={}
    )


def finished(pod: Object, *, now: float, restart: int, ended: Object, evicted: str = "") -> Object:
    """``evicted``: why it was, as a kubelet says it in the pod's status."""
    code = ended["terminated"]["exitCode"]
    extra = {"reason": EVICTED, "message": evicted} if evicted else {}
    phase = "Failed" if code else "Succeeded"
    return _status(pod, phase=phase, ready=False, now=now, restart=restart, state=ended, extra=extra)


def unstartable(pod: Object, *, now: float, words: str) -> Object:
    waiting = {"reason": "CreateContainerConfigError", "message": words}
    return _status(pod, phase="Pending", ready=False, now=now, restart=0, state={"waiting": waiting}, extra={})


def ordered_end(pod: Object) -> tuple[int, str] | None:
    """The exit code and message with which a running pod must end now, by its annotation. None if there is none."""
    code, _, words = annotations_of(pod).get(END, "").partition(" ")
    return (int(code), words) if code.isdecimal() else None


def ended_state(*, code: int, reason: str, started: float, now: float, message: str = "") -> Object:
    return {
        "terminated": {
            **({"message": message} if message else {}),
            "exitCode": code,
            "reason": reason or ("Error" if code else "Completed"),
            "startedAt": stamp(started),
            "finishedAt": stamp(now),
        }
    }


def _status(
    pod: Object,
    *,
    phase: str,
    ready: bool,
    now: float,
    restart: int,
    state: Object,
    extra: Object,
    last: Object | None = None,
) -> Object:
    before = pod.get("status") or {}
    done = phase in ("Succeeded", "Failed")
    ready_reason = "" if ready else ("PodCompleted" if phase == "Succeeded" else "ContainersNotReady")
    containers = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": restart,
            "state": state,
            "lastState": last or {},
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": phase,
        "startTime": before.get("startTime") or stamp(now),
        "containerStatuses": containers,
        "conditions": [
            _initialized(pod, missing_of(extra), now, done=done and phase == "Succeeded"),
            _condition(pod, "Ready", ready, now, ready_reason),
            _condition(pod, "ContainersReady", ready, now, ready_reason),
            condition(pod, "PodScheduled") or _condition(pod, "PodScheduled", True, now, ""),
        ],
        **extra,
    }


def _initialized(pod: Object, missing: Sequence[str], now: float, *, done: bool) -> Object:
    if not missing:
        return _condition(pod, "Initialized", True, now, "PodCompleted" if done else "")
    words = f"containers with incomplete status: [{' '.join(missing)}]"
    return {**_condition(pod, "Initialized", False, now, "ContainersNotInitialized"), "message": words}


def _condition(pod: Object, kind: str, true: bool, now: float, reason: str) -> Object:
    status = "True" if true else "False"
    before = condition(pod, kind)
    same = before is not None and before["status"] == status
    entry: Object = {
        "type": kind,
        "status": status,
        "lastTransitionTime": before["lastTransitionTime"] if before and same else stamp(now),
    }
    return {**entry, "reason": reason} if reason else entry
