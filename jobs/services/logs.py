"""A job's log, straight from the member that runs it. Nothing of it is kept in the fleet."""

from collections.abc import Iterator

from fleet.errors import NotFound, Unavailable
from fleet.kube import resources
from fleet.member.errors import MemberAway, MemberRefused
from fleet.models import Pod
from fleet.services import links
from jobs.kinds import registry
from jobs.models import Job

_SILENCE_S = 3600.0
"""How long a followed log may say nothing before the stream is given up."""


def stream(
    job: Job, *, pod: str = "", role: str = "", index: int = 0, follow: bool = False, tail: int | None = None
) -> Iterator[bytes]:
    """Lines of one pod's log, without line ends; by default of the chief, from the start."""
    found = _pod(job, pod, role, index)
    params = {"follow": "true"} if follow else {}
    if tail is not None:
        params["tailLines"] = str(tail)
    path = resources.PODS.path(found.namespace, found.name, "log")
    client = links.client(found.cluster)
    try:
        yield from client.stream_lines(path, params, read_timeout_s=_SILENCE_S if follow else 30.0)
    except MemberAway as e:
        raise Unavailable(f"{found.cluster} does not answer: {e.message}") from e
    except MemberRefused as e:
        raise NotFound(f"{found.cluster} has no log of {found.name}: {e.message}") from e


def _pod(job: Job, name: str, role: str, index: int) -> Pod:
    pods = Pod.objects.select_related("cluster").filter(job_uid=job.uid, attempt=job.attempt)
    if name:
        found = pods.filter(name=name).first()
        if found is None:
            raise NotFound(f"{job} has no pod {name}; it has {_names(list(pods))}")
        return found
    wanted = role or registry.of(job.api_version, job.kind).chief
    found = pods.filter(role=wanted, index=index).first() or (None if role else pods.order_by("role", "index").first())
    if found is None:
        raise NotFound(f"{job} has no {wanted} pod {index}; it has {_names(list(pods))}")
    return found


def _names(pods: list[Pod]) -> str:
    return ", ".join(sorted(pod.name for pod in pods)) or "none yet"
