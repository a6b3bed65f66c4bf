"""A job's log, straight from the member that runs it. Nothing of it is kept in the fleet."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fleet.errors import NotFound, Unavailable
from fleet.kube import resources
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberRefused
from fleet.models import Pod
from fleet.services.members import impersonation, member_clients
from jobs.core.division import shares
from jobs.kinds import registry
from jobs.models import Job

_SILENCE_S = 3600.0
"""How long a followed log may say nothing before the stream is given up."""


@dataclass(slots=True)
class Log:
    """The lines, without line ends, over a connection of its own.

    ``close`` may be called from another thread while a line is awaited; the wait then ends with `Unavailable`.
    """

    pod: Pod
    client: MemberClient
    lines: Iterator[bytes]

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self.lines)
        except MemberAway as e:
            raise Unavailable(f"{self.pod.cluster} does not answer: {e.message}") from e
        except MemberRefused as e:
            raise NotFound(f"{self.pod.cluster} has no log of {self.pod.name}: {e.message}") from e

    def close(self) -> None:
        self.client.close()


def stream(
    job: Job, user: Any, *, pod: str = "", role: str = "", index: int = 0, follow: bool = False, tail: int | None = None
) -> Log:
    """One pod's log for the user; by default of the chief, from the start. The caller has to close it."""
    target = _pod(job, pod, role, index)
    params = {"follow": "true"} if follow else {}
    if tail is not None:
        params["tailLines"] = str(tail)
    path = resources.PODS.path(target.namespace, target.name, "log")
    client = member_clients.connect(member_clients.access_of(target.cluster))
    client = impersonation.in_name_of(client, target.cluster, user)
    return Log(target, client, client.stream_lines(path, params, read_timeout_s=_SILENCE_S if follow else 30.0))


def _pod(job: Job, name: str, role: str, index: int) -> Pod:
    counting = shares.counting(job.shares, job.attempt)
    pods = Pod.objects.select_related("cluster").filter(job_uid=job.uid, attempt__in=counting)
    if name:
        target = pods.filter(name=name).first()
        if target is None:
            raise NotFound(f"{job} has no pod {name}; it has {_names(list(pods))}")
        return target
    role_name = role or registry.kind_of(job.api_version, job.kind).primary_role(each["name"] for each in job.roles)
    target = pods.filter(role=role_name, index=index).first() or (
        None if role else pods.order_by("role", "index").first()
    )
    if target is None:
        raise NotFound(f"{job} has no {role_name} pod {index}; it has {_names(list(pods))}")
    return target


def _names(pods: list[Pod]) -> str:
    return ", ".join(sorted(pod.name for pod in pods)) or "none yet"
