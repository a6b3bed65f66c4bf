"""What is kept of a pod: little, because a member has thousands of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fleet.core.members import marks
from jobs.kinds import registry
from jobs.runtime import notices as notice
from jobs.runtime.notices import Notice
from supervisor.core import signals
from supervisor.core.signals import Signal

Manifest = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace and name."""
MANAGED = "job-supervisor.kube-ai.io/managed-by-job-supervisor"
NOTICE_BY = "convoy.dev/notice-by"
PORT = 9009
"""Where kubeai listens."""


class How(StrEnum):
    """How a pod is given notice."""

    KUBEAI = "kubeai"
    SIGTERM = "sigterm"


@dataclass(frozen=True, slots=True)
class Owner:
    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodFacts:
    namespace: str
    name: str
    uid: str
    version: str
    job: str
    """The same for all pods of one attempt of a job."""
    owner: Owner | None
    role: str
    node: str
    ip: str
    phase: str
    leaving: bool
    """It is being deleted."""
    ended: bool
    """None of its containers runs, and one has ended."""
    restarts: int
    how: How | None
    signal: Signal | None
    """Of the pod itself, not of its node."""
    notice: Notice | None
    heard: float | None
    step: int | None
    started: float | None = None
    """When the latest of its containers that run was started, in whole seconds by the clock of its node."""

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def is_live(self) -> bool:
        """Whether its process may be at work, or still start."""
        return not self.leaving and self.phase not in ("Succeeded", "Failed")

    @property
    def has_left(self) -> bool:
        """Whether the process that was given notice has ended."""
        return self.ended or (self.notice is not None and self.restarts > self.notice.restarts)


def read(pod: Manifest) -> PodFacts:
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    notes, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    containers = [entry for entry in status.get("containerStatuses") or [] if isinstance(entry, Mapping)]
    states = [entry.get("state") or {} for entry in containers]
    owner, uid, namespace = owner_of(meta), str(meta.get("uid") or ""), str(meta.get("namespace") or "")
    return PodFacts(
        namespace=namespace,
        name=str(meta["name"]),
        uid=uid,
        version=str(meta.get("resourceVersion") or ""),
        job=job_of(namespace, labels, owner.uid if owner else uid),
        owner=owner,
        role=registry.pod_role({**notes, **labels})[0],
        node=str(spec.get("nodeName") or ""),
        ip=str(status.get("podIP") or ""),
        phase=str(status.get("phase") or "Pending"),
        leaving=bool(meta.get("deletionTimestamp")),
        ended=any("terminated" in state for state in states) and not any("running" in state for state in states),
        restarts=sum(int(entry.get("restartCount") or 0) for entry in containers),
        how=_how(notes),
        signal=signals.of_pod(pod),
        notice=notice.read_notice(notes.get(notice.NOTICE), uid),
        heard=_moment(notes.get(notice.HEARD)),
        step=_step(notes.get(notice.SAVED_STEP)),
        started=_started(states),
    )


def owner_of(meta: Manifest) -> Owner | None:
    owners = [entry for entry in meta.get("ownerReferences") or [] if isinstance(entry, Mapping)]
    owner = next((entry for entry in owners if entry.get("controller")), owners[0] if owners else None)
    fields = ("apiVersion", "kind", "name", "uid")
    return Owner(*(str(owner.get(field) or "") for field in fields)) if owner else None


def job_of(namespace: str, labels: Manifest, otherwise: str) -> str:
    """Pods of the fleet's jobs know their attempt; others are together with those of the same owner.

    Never across namespaces: a tenant that may make pods in one of them can write any label and any owner.
    """
    if marks.JOB_UID in labels:
        return f"{namespace}/{labels[marks.JOB_UID]}/{labels.get(marks.ATTEMPT, '')}"
    return f"{namespace}/{otherwise}"


def _how(notes: Manifest) -> How | None:
    if notes.get(MANAGED) == "true":
        return How.KUBEAI
    return How.SIGTERM if notes.get(NOTICE_BY) == How.SIGTERM else None


def _started(states: Iterable[Any]) -> float | None:
    running = [state.get("running") or {} for state in states if isinstance(state, Mapping)]
    return max((at for each in running if (at := _moment(each.get("startedAt"))) is not None), default=None)


def _moment(text: object) -> float | None:
    try:
        return None if text is None else notice.seconds(text)
    except ValueError:
        return None


def _step(text: object) -> int | None:
    known = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 16
    return int(str(text)) if known else None
