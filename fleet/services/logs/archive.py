"""What is kept of ended pods, for those who may read the pods' namespace: the pod as it was last, and its log."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from fleet.core.members import hub_names, log_text
from fleet.core.members.hub_names import hub_name
from fleet.core.members.log_text import Selection
from fleet.errors import InvalidInput, NotFound, Unavailable
from fleet.models import ArchivedLog, Cluster, EndedPod, Pod
from fleet.services.logs import recording, storing
from fleet.services.members.member_objects import Ambiguous

State = EndedPod.State
_FEW = 10


class NotKept(InvalidInput):
    """A log that the pod does not have, or of which nothing is kept."""

    status = 400
    title = "No such log"


@dataclass(frozen=True, slots=True)
class Text:
    content: bytes
    notes: Sequence[str]
    """What the reader should know of it, in sentences."""


def pod_meant(namespace: str, name: str) -> EndedPod | None:
    """The newest ended pod with this name at the fleet; else of the only cluster that had the name. Raises Ambiguous."""
    in_member, cluster = hub_names.split(name)
    rows = EndedPod.objects.filter(namespace=namespace).order_by("-ended_at", "-pk")
    if cluster:
        kept = hub_names.kept_of(name)
        there = rows.filter(cluster_name=cluster)
        candidates: list[EndedPod] = [
            *there.filter(name=in_member)[:1],
            *(there.filter(name__startswith=kept) if kept else ()),
        ]
        if matches := [pod for pod in candidates if hub_name(pod.name, pod.cluster_name) == name]:
            return matches[0]
    namesakes = {pod.cluster_name: pod for pod in reversed(rows.filter(name=name)[:_FEW])}
    if len(namesakes) > 1:
        names = ", ".join(hub_name(name, cluster) for cluster in sorted(namesakes))
        raise Ambiguous(f"pod {name} was in several clusters: name one of {names}")
    return next(iter(namesakes.values()), None)


def pod_of(pod: Pod) -> EndedPod | None:
    """What is kept of this pod."""
    return EndedPod.objects.filter(cluster_uid=pod.cluster.uid, uid=pod.uid).first()


def of_job(job_uid: UUID) -> Sequence[EndedPod]:
    """In the order of attempts, roles and indices; of one name the newest first."""
    return list(EndedPod.objects.filter(job_uid=job_uid).order_by("attempt", "role", "index", "-ended_at", "-pk"))


def as_row(ended: EndedPod) -> Pod:
    """The pod as its row was last, of its cluster as it is now, or of one that only has the name."""
    pod = recording.pod_of(ended)
    pod.cluster = ended.cluster or Cluster(name=ended.cluster_name, uid=ended.cluster_uid, state=Cluster.State.READY)
    return pod


def text_of(ended: EndedPod, wanted: Selection, *, container: str = "", previous: bool = False) -> Text:
    """The kept log of one container, by default the first that is no init container."""
    logs = list(ended.logs.defer("data"))
    if ended.state == State.DUE and not logs:
        raise Unavailable(f"the log of {ended.name} has not been read from {ended.cluster_name} yet: try again")
    if not logs:
        raise NotFound(f"no log of {ended.name} is kept: {ended.message or 'its cluster had none'}")
    log = _log(ended, logs, container, previous)
    try:
        content = storing.read(ArchivedLog.objects.select_related("pod").get(pk=log.pk))
    except storing.StoreFailed as e:
        raise Unavailable(f"the kept log of {ended.name} cannot be read now: {e}") from e
    except storing.LogUnreadable as e:
        raise NotFound(f"the kept log of {ended.name} cannot be read: {e}") from e
    return Text(log_text.select(content, wanted), _notes(ended, log))


def _log(ended: EndedPod, logs: Sequence[ArchivedLog], container: str, previous: bool) -> ArchivedLog:
    name = container or _main(ended)
    log = next((log for log in logs if (log.container, log.previous) == (name, previous)), None)
    if log is None and previous:
        raise NotKept(f'previous terminated container "{name}" in pod "{ended.name}" not found')
    if log is None:
        names = ", ".join(dict.fromkeys(each.container for each in logs))
        raise NotKept(f"no log of container {name} of pod {ended.name} is kept; it has {names}")
    return log


def _main(ended: EndedPod) -> str:
    containers = recording.containers_of(ended)
    return containers[0] if containers else ended.logs.last().container  # type: ignore[union-attr]  # there are some


def _notes(ended: EndedPod, log: ArchivedLog) -> Sequence[str]:
    notes = [f"the beginning of the log of {ended.name} was not kept when the pod ended"] if log.is_cut else []
    if log.is_early:
        notes.append(f"{ended.name} was stopped after this was read: what it printed last may be missing")
    return notes
