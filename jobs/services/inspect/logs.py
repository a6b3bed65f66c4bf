"""A job's log, straight from the member that runs it; of a pod that has ended, what is kept where its member gives none.

A log is read by a thread (`Log`), or followed by an event loop (`Way`).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from fleet.core.members import log_text
from fleet.core.members.log_text import Selection
from fleet.errors import ConvoyError, NotFound, Unavailable
from fleet.kube import resources
from fleet.member import errors
from fleet.member.errors import MemberAway, MemberError, MemberRefused
from fleet.member.streaming.following import Following, Line
from fleet.models import Cluster, EndedPod, Pod
from fleet.services.logs import archive
from fleet.services.members import impersonation, member_clients, proxying
from jobs.core.division import shares
from jobs.kinds import registry
from jobs.models import Job

_FEW = 50
_SILENCE_S = 3600.0
"""How long a followed log may say nothing before the stream is given up."""
_ASKED_S = 30.0
"""Within which a member is asked for a followed log, and says why it has none."""


class Closing(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Nothing:
    """In the place of a connection."""

    def close(self) -> None:
        pass


@dataclass(slots=True)
class Log:
    """The lines, without line ends, over a connection of its own.

    ``close`` may be called from another thread while a line is awaited; the wait then ends with `Unavailable`.
    """

    pod: Pod
    client: Closing
    lines: Iterator[bytes]

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self.lines)
        except (MemberAway, MemberRefused) as e:
            raise _refusal(self.pod, e) from e

    def close(self) -> None:
        self.client.close()


@dataclass(frozen=True, slots=True)
class Query:
    """Which log of a job, and what part of it."""

    pod: str = ""
    role: str = ""
    index: int = 0
    attempt: int | None = None
    """None: of the attempts that count now, else of the last that has one."""
    follow: bool = False
    tail: int | None = None


_DEFAULT = Query()


@dataclass(frozen=True, slots=True)
class Way:
    """To the log of a pod in its member. Nothing has been asked yet."""

    pod: Pod
    line: Line
    query: Query

    async def open(self) -> Following:
        """The answer, once the member has begun it. Raises `Unavailable` and `NotFound` as `Log` does."""
        path, params = _asked(self.pod, self.query)
        try:
            answer = await Following.open(
                self.line, f"{path}?{urlencode(params)}", timeout_s=_ASKED_S, idle_s=_SILENCE_S
            )
            if answer.status >= 300:
                raise await _error(answer)
        except MemberError as e:
            raise _refusal(self.pod, e) from e
        return answer

    def kept(self) -> Log | None:
        """What is kept of the log, for when the member gives none."""
        ended = _kept(self.pod)
        return Log(self.pod, Nothing(), _kept_lines(ended, self.query)) if ended else None


def way_to(job: Job, user: Any, query: Query) -> Way | None:
    """To one pod's log, for the user. None where no member can be asked, and `stream` reads what is kept."""
    pod = _live(job, query)
    if pod is None or (pod.cluster.state != Cluster.State.READY and _kept(pod)):
        return None
    return Way(pod, proxying.line_to(pod.cluster, user), query)


def stream(job: Job, user: Any, query: Query = _DEFAULT) -> Log:
    """One pod's log for the user; by default of the primary role, from the start. The caller has to close it."""
    target = _live(job, query)
    if target is None:
        ended = _ended(job, query)
        return Log(archive.as_row(ended), Nothing(), _kept_lines(ended, query))
    if target.cluster.state != Cluster.State.READY and (kept := _kept(target)):
        return Log(target, Nothing(), _kept_lines(kept, query))
    path, params = _asked(target, query)
    client = member_clients.connect(member_clients.access_of(target.cluster))
    client = impersonation.in_name_of(client, target.cluster, user)
    lines = client.stream_lines(path, params, read_timeout_s=_SILENCE_S if query.follow else 30.0)
    return Log(target, client, _or_kept(lines, target, query))


def _asked(pod: Pod, query: Query) -> tuple[str, dict[str, str]]:
    """The path and the parameters by which the pod's member is asked."""
    params = {"follow": "true"} if query.follow else {}
    if query.tail is not None:
        params["tailLines"] = str(query.tail)
    return resources.PODS.path(pod.namespace, pod.name, "log"), params


async def _error(answer: Following) -> MemberError:
    """What the member says instead of a log, whose answer is closed."""
    try:
        async with asyncio.timeout(_ASKED_S):
            return errors.from_answer(answer.status, await answer.read())
    except TimeoutError:
        return errors.from_answer(answer.status, b"")
    finally:
        answer.close()


def _refusal(pod: Pod, error: MemberError) -> ConvoyError:
    if isinstance(error, MemberRefused):
        return NotFound(f"{pod.cluster} has no log of {pod.name}: {error.message}")
    return Unavailable(f"{pod.cluster} does not answer: {error.message}")


def _or_kept(lines: Iterator[bytes], pod: Pod, query: Query) -> Iterator[bytes]:
    """The lines; what is kept of the pod's log instead when its member gives none at all."""
    has_begun = False
    try:
        for line in lines:
            has_begun = True
            yield line
    except (MemberAway, MemberRefused):
        kept = None if has_begun else _kept(pod)
        if kept is None:
            raise
        yield from _kept_lines(kept, query)


def _kept(pod: Pod) -> EndedPod | None:
    """What is kept of a pod whose row is still there; None until its log has been read."""
    kept = archive.pod_of(pod)
    return kept if kept and kept.state == EndedPod.State.KEPT else None


def _kept_lines(ended: EndedPod, query: Query) -> Iterator[bytes]:
    content = archive.text_of(ended, Selection(tail_lines=query.tail)).content
    yield from (line.removesuffix(b"\n") for line in log_text.split(content))


def _live(job: Job, query: Query) -> Pod | None:
    """The pod whose row is there. By default the first of all pods when the primary role has none."""
    counting = [query.attempt] if query.attempt is not None else shares.counting(job.shares, job.attempt)
    pods = Pod.objects.select_related("cluster").filter(job_uid=job.uid, attempt__in=counting)
    if query.pod:
        return pods.filter(name=query.pod).first()
    pod = pods.filter(role=query.role or _primary_role(job), index=query.index).first()
    return pod or (None if query.role else pods.order_by("role", "index").first())


def _ended(job: Job, query: Query) -> EndedPod:
    """The pod of the newest attempt among those that are gone. Raises NotFound."""
    pods = [pod for pod in archive.of_job(job.uid) if query.attempt in (None, pod.attempt)]
    if query.pod:
        pods = [pod for pod in pods if pod.name == query.pod]
    else:
        role = query.role or _primary_role(job)
        of_role = [pod for pod in pods if (pod.role, pod.index) == (role, query.index)]
        pods = of_role if of_role or query.role else pods
    if not pods:
        raise NotFound(f"{job} has no {_wanted(job, query)}; it has {_names(job)}")
    last = max(pod.attempt for pod in pods)
    return next(pod for pod in pods if pod.attempt == last)


def _wanted(job: Job, query: Query) -> str:
    attempt = "" if query.attempt is None else f" of attempt {query.attempt}"
    return (
        f"pod {query.pod}{attempt}" if query.pod else f"{query.role or _primary_role(job)} pod {query.index}{attempt}"
    )


def _primary_role(job: Job) -> str:
    return registry.kind_of(job.api_version, job.kind).primary_role(each["name"] for each in job.roles)


def _names(job: Job) -> str:
    counting = shares.counting(job.shares, job.attempt)
    live = Pod.objects.filter(job_uid=job.uid, attempt__in=counting).values_list("name", flat=True)
    return ", ".join(sorted({*live, *(pod.name for pod in archive.of_job(job.uid))})[:_FEW]) or "none yet"
