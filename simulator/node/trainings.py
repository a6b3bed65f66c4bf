"""The pretended trainings of a member's pods: who trains together, and their checkpoints on a disk that all members share.

Annotations of a pod make it train: ``convoy.dev/step-seconds`` ("30", of one worker), and if wanted
``convoy.dev/checkpoint-every`` ("60s"), ``convoy.dev/restart-seconds``, ``convoy.dev/save-seconds`` ("2", from SIGTERM to its
end) and ``convoy.dev/steps`` ("5000", after which it ends with 0). All durations are simulated. Without a number of steps it
trains until it is deleted.
"""

import contextlib
import os
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

from simulator.machinery.clock import Clock
from simulator.machinery.objects import Object, annotations_of, key_of, labels_of, name_of, owner_of, uid_of
from simulator.node.lifecycle import STEP, seconds
from simulator.node.training import Pace, Training

EVERY, RESTART = "convoy.dev/checkpoint-every", "convoy.dev/restart-seconds"
SAVE, STEPS = "convoy.dev/save-seconds", "convoy.dev/steps"
SAVED_STEP = "convoy.dev/saved-step"
"""Of a pod: the step that it has saved before it left."""
FOLDER = "checkpoints"
_JOB = "convoy.dev/job-uid"
_UID = re.compile(r"[0-9a-f-]{36}")


def pace_of(pod: Object, clock: Clock) -> Pace | None:
    """None: the pod does not train. Raises ValueError with the annotation that is no duration, or no number of steps."""
    notes = annotations_of(pod)
    if STEP not in notes:
        return None
    step_s, checkpoint_s, restart_s, save_s = (
        _duration(name, notes.get(name, default), clock) for name, default in _DEFAULTS.items()
    )
    if step_s <= 0:
        raise ValueError(f"{STEP}: {notes[STEP]!r} is not above 0")
    steps = notes.get(STEPS, "0")
    if not (steps.isascii() and steps.isdigit() and len(steps) < 16):
        raise ValueError(f"{STEPS}: {steps[:40]!r} is not a number of steps")
    return Pace(step_s, checkpoint_s, restart_s, save_s, int(steps))


def _duration(name: str, text: str, clock: Clock) -> float:
    try:
        return clock.real(seconds(text))
    except ValueError as e:
        raise ValueError(f"{name}: {e}") from e


_DEFAULTS = {STEP: "1", EVERY: "0", RESTART: "0", SAVE: "2"}


def job_of(pod: Object) -> str:
    """The same for all attempts of a job of the fleet, in every member; else the owner."""
    owner, label = owner_of(pod), labels_of(pod).get(_JOB, "")
    if _UID.fullmatch(label):
        return label
    return str(owner["uid"]) if owner else uid_of(pod)


@dataclass
class Trainings:
    home: Path
    """Of one member. The checkpoints are beside it."""
    clock: Clock
    _trainings: dict[str, Training] = field(default_factory=dict)
    _jobs: dict[str, str] = field(default_factory=dict)
    """The job of each pod that trains, by the pod's uid."""
    _keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """By job: the keys of its pods by their names."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def join(self, pod: Object, now: float) -> list[str]:
        """The pod's container has started. Returns the keys of all pods whose end may have changed."""
        pace = pace_of(pod, self.clock)
        if pace is None:
            return []
        with self._lock:
            job = job_of(pod)
            training = self._trainings.get(job)
            if training is None:
                training = self._trainings[job] = Training(pace, saved=self._read(job))
            training.join(name_of(pod), now)
            self._jobs[uid_of(pod)] = job
            keys = self._keys.setdefault(job, {})
            keys[name_of(pod)] = key_of(pod)
            return list(keys.values())

    def leave(self, pod: Object, now: float, *, saved: bool) -> list[str]:
        """The pod's container has ended. Returns the keys of the others."""
        with self._lock:
            job = self._jobs.pop(uid_of(pod), None)
            if job is None:
                return []
            training = self._trainings[job]
            training.leave(name_of(pod), now, saved=saved)
            self._write(job, training.saved)
            self._keys[job].pop(name_of(pod), None)
            return list(self._keys[job].values())

    def saving_s(self, pod: Object) -> float:
        """How long the pod takes to save when it is asked to stop (real seconds)."""
        with self._lock:
            job = self._jobs.get(uid_of(pod))
            return self._trainings[job].pace.save_s if job else 0.0

    def step(self, pod: Object, now: float) -> int | None:
        """The step that the pod's job has reached; None for a pod that does not train."""
        with self._lock:
            job = self._jobs.get(uid_of(pod))
            return int(self._trainings[job].step_at(now)) if job else None

    def ends_at(self, pod: Object) -> float | None:
        with self._lock:
            job = self._jobs.get(uid_of(pod))
            return self._trainings[job].ends_at() if job else None

    def checkpoint(self, pod: Object, now: float) -> float | None:
        """Keeps what the job has saved, and returns when its next checkpoint is due."""
        with self._lock:
            job = self._jobs.get(uid_of(pod))
            if job is None:
                return None
            training = self._trainings[job]
            before = training.saved
            due = training.checkpoint(now)
            if training.saved != before:
                self._write(job, training.saved)
            return due

    def of_log(self, pod: Object) -> Training | None:
        """For its log: the training of a pod, also after it has left."""
        with self._lock:
            return self._trainings.get(job_of(pod))

    def _read(self, job: str) -> float:
        with contextlib.suppress(OSError, ValueError):
            return float(self._file(job).read_text())
        return 0.0

    def _write(self, job: str, step: float) -> None:
        file = self._file(job)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = file.with_name(f"{file.name}.{os.getpid()}-{self.home.name}")
        draft.write_text(f"{step:.3f}")
        draft.replace(file)

    def _file(self, job: str) -> Path:
        return self.home.parent / FOLDER / job
