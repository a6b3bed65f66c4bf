"""What the runtimes of a job say of it: facts from the ends of its pods' logs, with those that were stored before.

The logs are read in the name of who asks, from a bounded number of pods at a time, and within bounds each.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import BoundedSemaphore
from typing import Any

from fleet.errors import Unavailable
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.models import Cluster, Pod
from fleet.services.members import impersonation, member_clients, pod_logs
from jobs.core.division import shares
from jobs.kinds import registry
from jobs.models import Job, RuntimeFact
from jobs.runtime import checkpoints, facts
from jobs.runtime.checkpoints import Checkpoint
from jobs.runtime.fact import by_key
from jobs.runtime.facts import Fact, Kind

PODS = 32
"""Logs that are read for one answer: those of the chief, then by role and index."""
_AT_ONCE = 8
_READERS = 4
"""Answers that one process makes at a time."""
_places = BoundedSemaphore(_READERS)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@contextmanager
def place() -> Iterator[None]:
    """One of the places for answers that read many logs. Raises Unavailable if all are taken."""
    if not _places.acquire(blocking=False):
        raise Unavailable("too many logs are read at this moment: try again")
    try:
        yield
    finally:
        _places.release()


@dataclass(frozen=True, slots=True)
class RankedPod:
    """A pod and the ranks that its runtime gave it; none where it does not say."""

    pod: str
    role: str
    index: int
    node: str
    ranks: tuple[int, ...]
    world_size: int | None
    restarts: int | None


@dataclass(frozen=True, slots=True)
class Runtime:
    facts: Sequence[Fact]
    """The latest of all pods, oldest first."""
    ranks: Sequence[RankedPod]
    warnings: Sequence[str]
    """Which logs are missing, and why."""
    checkpoints: Sequence[Checkpoint]
    """The latest of those that the facts of all pods make up, oldest first."""


def of_job(job: Job, user: Any) -> Runtime:
    """The facts of the attempts that count now. Never fails for a member."""
    with place():
        return _read(job, user)


def _read(job: Job, user: Any) -> Runtime:
    pods = pods_of(job)
    asked = [
        (pod, client_for(pod.cluster, user)) for pod in pods[:PODS]
    ]  # here, where there is a connection to the database
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="runtime") as pool:
        answers = list(pool.map(lambda each: _of_pod(*each), asked))
    warnings = [why for _, why in answers if why]
    if len(pods) > PODS:
        warnings.append(f"the logs of {PODS} of {len(pods)} pods are read")
    stated = _with_stored(job, [fact for of_pod, _ in answers for fact in of_pod])
    ranks = [ranks_in(pod, of_pod) for pod, (of_pod, _) in zip(pods, answers, strict=False)]
    return Runtime(stated[-facts.MOST :], ranks, warnings, checkpoints.summarize(stated)[-facts.MOST :])


def _with_stored(job: Job, said: Iterable[Fact]) -> list[Fact]:
    """With those that were stored of the attempts that count, whose pods may be gone."""
    counting = shares.counting(job.shares, job.attempt)
    rows = RuntimeFact.objects.filter(job=job, attempt__in=counting).values_list("key", "data")
    known = {key: Fact.from_json(data) for key, data in rows} | by_key(said)
    return sorted(known.values(), key=lambda fact: fact.at or _LONG_AGO)


def pods_of(job: Job) -> list[Pod]:
    """The pods of the attempts that count now: the master and the chief, then by role and index."""
    counting = shares.counting(job.shares, job.attempt)
    rows = Pod.objects.select_related("cluster").filter(job_uid=job.uid, attempt__in=counting)
    chief = registry.kind_of(job.api_version, job.kind).primary_role(role["name"] for role in job.roles)
    return sorted(rows, key=lambda pod: ("master" not in pod.role, pod.role != chief, pod.role, pod.index, pod.name))


def client_for(cluster: Cluster, user: Any) -> MemberClient | None:
    """A client in the name of the user; None: the cluster does not answer."""
    if cluster.state != Cluster.State.READY:
        return None
    client = member_clients.client(cluster, timeout_s=pod_logs.ANSWER_S)
    return impersonation.in_name_of(client, cluster, user)


def _of_pod(pod: Pod, client: MemberClient | None) -> tuple[list[Fact], str]:
    if client is None:
        return [], f"no log of {pod.name}: {pod.cluster} does not answer"
    try:
        return facts.read(pod_logs.text(client, pod, timestamps=True), pod.name), ""
    except MemberError as e:
        return [], f"no log of {pod.name}: {e.message}"[:300]


def ranks_in(pod: Pod, said: Iterable[Fact]) -> RankedPod:
    """The pod with the ranks of its latest rendezvous, by the facts of its log."""
    meetings = [fact for fact in said if fact.kind is Kind.RENDEZVOUS and fact.message == "" and fact.pod == pod.name]
    latest = max((fact.restarts or 0 for fact in meetings), default=0)
    now = [fact for fact in meetings if (fact.restarts or 0) == latest]
    ranks = sorted({fact.rank for fact in now if fact.rank is not None})
    last = now[-1] if now else Fact(Kind.RENDEZVOUS)
    return RankedPod(pod.name, pod.role, pod.index, pod.node, tuple(ranks), last.world_size, last.restarts)
