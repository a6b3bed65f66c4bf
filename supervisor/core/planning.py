"""What to do for one job now: from its pods, the signals on them, and the time. Called again after every change.

Laws: a pod's deadline never changes once it is written; no pod is deleted before its process has ended or its deadline is over;
a job is suspended only when that holds for every pod that got notice.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.runtime.notices import Notice, Scope
from supervisor.core.facts import How, PodFacts
from supervisor.core.signals import Signal


@dataclass(frozen=True, slots=True)
class Begun:
    """A notice that the job's record has of a pod."""

    notice: Notice
    restarts: int | None = None
    """As `Notice.restarts`; None: a version before did not record it."""
    heard: float | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    pods: Sequence[PodFacts]
    signals: Mapping[str, Signal]
    """By the uid of the pods whose place is taken back."""
    least: Mapping[str, int]
    """By role that may be resized, how many pods it needs."""
    stopping: Notice | None = None
    """The notice to the whole job that the job's record has, until the job is suspended."""
    begun: Mapping[str, Begun] = field(default_factory=dict)
    """By the uid of the pod, the notices that the job's record has: one that is not on its pod yet was to be given."""
    stop_began: bool = False
    """A pod has heard the notice `stopping`, or has left since."""


@dataclass(frozen=True, slots=True)
class Give:
    """Write the notice on the pod."""

    pod: PodFacts
    notice: Notice


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Remove a notice that was not heard: the place is not taken back any more."""

    pod: PodFacts


@dataclass(frozen=True, slots=True)
class Notify:
    pod: PodFacts


@dataclass(frozen=True, slots=True)
class Delete:
    pod: PodFacts
    grace_s: int | None = None
    """None: its own."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """By the switch of the job itself; its pods are deleted after that."""


PodAction = Give | Withdraw | Notify | Delete
Action = PodAction | Suspend


def plan(job: JobView, now: float, notice_s: Mapping[str, float]) -> list[Action]:
    if job.stopping is None and not job.begun and not any(pod.how for pod in job.pods):
        return []
    on_pods = {pod.uid for pod in job.pods if pod.notice}
    job = replace(job, pods=[_with_begun(job, pod) for pod in job.pods])
    live = [pod for pod in job.pods if pod.is_live]
    withdrawn = {pod.uid for pod in live if pod.notice and _is_withdrawn(job, pod)}
    actions: list[Action] = [Withdraw(pod) for pod in live if pod.uid in withdrawn]
    standing = [pod for pod in live if pod.notice and pod.uid not in withdrawn]
    stopping = None if _is_stop_withdrawn(job, withdrawn) else job.stopping
    stopping = stopping or next((pod.notice for pod in standing if _of_job(pod)), None)
    if stopping is None and _is_below_min(job, live):
        stopping = _stop_notice(job, live, now, notice_s)
    gives = [(pod, pod.notice) for pod in standing if pod.notice and pod.uid not in on_pods]
    gives += _notices(job, live, stopping, now, notice_s)
    actions += [Give(pod, notice) for pod, notice in gives]
    actions += [action for pod in standing if pod.uid in on_pods for action in _advance(pod, now)]
    if stopping is not None and not gives:
        actions += _stop(job, stopping, now)
    return actions


def restarts_before(pod: PodFacts, sent: Notice) -> int:
    """Restarts of the pod up to its notice. More than were known then, where the one that runs was started before it."""
    is_older = pod.started is not None and pod.started < int(sent.at)
    return max(pod.restarts, sent.restarts) if is_older else sent.restarts


def _with_begun(job: JobView, pod: PodFacts) -> PodFacts:
    """The pod as if the notice that the job's record has of it stood on it. Its process may have heard it, and have left."""
    begun = job.begun.get(pod.uid)
    if begun is None or pod.notice is not None:
        return pod
    sent = replace(begun.notice, restarts=pod.restarts if begun.restarts is None else begun.restarts)
    return replace(pod, notice=replace(sent, restarts=restarts_before(pod, sent)), heard=begun.heard)


def _of_job(pod: PodFacts) -> bool:
    return pod.notice is not None and pod.notice.scope is Scope.JOB


def _is_withdrawn(job: JobView, pod: PodFacts) -> bool:
    """Whether nothing is left of an unheard notice; one to the whole job stands as long as any reason for it does."""
    if pod.heard is not None or pod.has_left or pod.notice is None or pod.uid in job.signals:
        return False
    together = [other for other in job.pods if other.notice and other.notice.id == pod.notice.id]
    if job.stop_began and job.stopping is not None and job.stopping.id == pod.notice.id:
        return False
    return not _of_job(pod) or not any(
        other.uid in job.signals or other.heard is not None or other.has_left or not other.is_live for other in together
    )


def _is_stop_withdrawn(job: JobView, withdrawn: Collection[str]) -> bool:
    """Whether nothing is left of the notice to the whole job that the record has."""
    notices = (pod.notice for pod in job.pods if pod.uid in withdrawn)
    return job.stopping is not None and any(sent is not None and sent.id == job.stopping.id for sent in notices)


def _stop_notice(job: JobView, live: Sequence[PodFacts], now: float, notice_s: Mapping[str, float]) -> Notice | None:
    """The notice to a whole job: until the first of its places is taken."""
    dues = {pod.uid: job.signals[pod.uid].due(now, notice_s) for pod in live if pod.uid in job.signals}
    dues |= {pod.uid: pod.notice.deadline for pod in live if pod.notice}
    reclaimed = [pod for pod in live if pod.uid in job.signals and pod.notice is None]
    if not reclaimed:
        return None
    first = min(reclaimed, key=lambda pod: dues[pod.uid])
    return _notice(first, job.signals[first.uid], now, min(dues.values()), Scope.JOB)


def _notices(
    job: JobView, live: Sequence[PodFacts], stopping: Notice | None, now: float, notice_s: Mapping[str, float]
) -> Iterator[tuple[PodFacts, Notice]]:
    """The pods that get notice now. One that is not bound has no process, and no place to lose."""
    for pod in live:
        if pod.how is None or pod.notice is not None or not pod.node:
            continue
        if stopping is not None:
            yield pod, replace(stopping, restarts=pod.restarts)
        elif (signal := job.signals.get(pod.uid)) is not None:
            yield pod, _notice(pod, signal, now, signal.due(now, notice_s), Scope.PODS)


def _notice(pod: PodFacts, signal: Signal, now: float, deadline: float, scope: Scope) -> Notice:
    id = f"{signal.node or pod.name}-{round(now * 1000):x}"
    return Notice(id, signal.cause, signal.node, now, deadline, scope, pod.restarts)


def _is_below_min(job: JobView, live: Sequence[PodFacts]) -> bool:
    """Whether too few pods of a role would go on. A pod that is not bound yet is no survivor."""
    leaving = {pod.uid: pod.role for pod in live if pod.node and (pod.uid in job.signals or pod.notice is not None)}
    staying = Counter(pod.role for pod in live if pod.uid not in leaving and pod.node)
    return any(role not in job.least or staying[role] < job.least[role] for role in leaving.values())


def _advance(pod: PodFacts, now: float) -> Iterator[Action]:
    assert pod.notice is not None  # noqa: S101
    over = pod.has_left or now >= pod.notice.deadline
    if over and not _of_job(pod):
        yield Delete(pod)
    elif over:
        return
    elif pod.how is How.SIGTERM:
        yield Delete(pod, max(int(pod.notice.deadline - now), 1))
    elif pod.heard is None:
        yield Notify(pod)


def _stop(job: JobView, stopping: Notice, now: float) -> Iterator[Action]:
    """The end of a job of which all pods got notice, once the last has left or may not stay. A pod that is being deleted may
    still be saving: to suspend the job would cut its grace period.
    """
    asked = [pod for pod in job.pods if _of_job(pod) and pod.phase not in ("Succeeded", "Failed")]
    if now >= stopping.deadline or all(pod.has_left for pod in asked):
        yield Suspend()
        yield from (Delete(pod) for pod in asked if not pod.leaving)
