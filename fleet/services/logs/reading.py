"""Reads the logs of ended pods from their members, once, and keeps them. Pods that Convoy stops are read before, too.

A pod is claimed by moving `EndedPod.due_at` on, so that of two workers one reads it, and the pod of a worker that died is
read again. Members are asked by threads of their own, one for each member: one that is slow keeps neither the worker nor other
members waiting. Whatever is due is found in the rows, by the task that follows a pod's end and by each minute's housekeeping.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Min, Q
from structlog import get_logger

from fleet.core.members.typed_values import mapping, mappings, number, text
from fleet.db import isolation
from fleet.db.clock import STEP
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberAway, MemberError, MemberMissing, MemberRefused
from fleet.models import ArchivedLog, Cluster, EndedPod
from fleet.services.logs import recording, storing
from fleet.services.members import member_clients, pod_logs

log = get_logger(__name__)
Clock = Callable[[], datetime]
State = EndedPod.State

CONTAINERS = 16
"""Logs of one pod that are kept."""
_CLAIM = timedelta(minutes=5)
"""Longer than reading all logs of a pod takes."""
_PAUSE = timedelta(seconds=50)
"""Until a member that did not answer is asked again."""
_TRIES = 5
"""For a member that answers something of which no log can be made."""
_READ_S = 20.0
_LONGEST = timedelta(minutes=1)
"""For all logs of a pod."""
_AT_ONCE = 8
_SLOTS = threading.BoundedSemaphore(_AT_ONCE)
_BEFORE_STOP_AT_ONCE = 4
"""Threads that read the logs of one job's pods before these are stopped."""
_EARLY = 1000
"""Added to the numbers of logs that are read before the pod's end, so that no file is written twice."""
_BEFORE_STOP = threading.BoundedSemaphore(16)
_busy: set[int] = set()
"""Members that a thread of this process is asking."""


@dataclass(slots=True)
class Found:
    """The logs of one pod, and why some of them are missing."""

    logs: list[tuple[ArchivedLog, bytes]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class Gone(Exception):  # noqa: N818 - what the member says, no error of ours
    """The member does not have the pod any more."""


def start(clock: Clock) -> list[threading.Thread]:
    """Begins to read from the members that have logs due, as many as there are free threads; does not wait for them."""
    due = EndedPod.objects.filter(_is_due(clock()), cluster__isnull=False).order_by().values("cluster")
    threads = []
    for pk in [row["cluster"] for row in due.annotate(first=Min("due_at")).order_by("first")]:
        if pk in _busy:
            continue
        if not _SLOTS.acquire(blocking=False):
            break
        _busy.add(pk)
        thread = threading.Thread(target=_tend, args=(pk, clock), name=f"logs {pk}", daemon=True)
        thread.start()
        threads.append(thread)
    return threads


def _is_due(now: datetime) -> Q:
    """A time beyond any wait is from before the clock was set back."""
    return Q(due_at__lte=now) | Q(due_at__gt=now + max(_PAUSE, _CLAIM) + STEP)


def _tend(pk: int, clock: Clock) -> None:
    try:
        while read_due(pk, clock):
            pass
    finally:
        _busy.discard(pk)
        _SLOTS.release()
        connection.close()
    # What has become due since the last look found the member busy, and was left to this thread.
    if EndedPod.objects.filter(_is_due(clock()), cluster_id=pk).exists():
        start(clock)
    connection.close()


def read_due(cluster_id: int, clock: Clock) -> bool:
    """Reads the logs of one pod of the cluster that is due; False when there is none, or the cluster does not answer."""
    due = EndedPod.objects.filter(_is_due(clock()), cluster_id=cluster_id).select_related("cluster")
    pod = due.order_by("due_at", "pk").first()
    return pod is not None and _read_one(pod, clock)


def _read_one(pod: EndedPod, clock: Clock) -> bool:
    """Claims the pod and reads its logs; False when its cluster is gone or does not answer."""
    now = clock()
    if pod.cluster is None:
        return False
    if not EndedPod.objects.filter(pk=pod.pk, due_at=pod.due_at).update(due_at=now + _CLAIM, tries=pod.tries + 1):
        return True
    pod.due_at = now + _CLAIM
    done = isolation.run("logs.read", [f"ended pod {pod.pk}"], partial(_read, pod, pod.cluster, clock))
    return bool(done and done[0])


def read_before_stop(pods: Sequence[EndedPod], clock: Clock, wait_s: float) -> None:
    """Reads the logs of pods that are about to be stopped, and waits for that no longer than ``wait_s``.

    What is not read in this time is read when it comes. Pods for which no thread is free stay due.
    """
    pending, until = deque(pods), monotonic() + wait_s
    threads: list[threading.Thread] = []
    while len(threads) < min(_BEFORE_STOP_AT_ONCE, len(pods)) and _BEFORE_STOP.acquire(blocking=False):
        threads.append(
            threading.Thread(target=_read_pending, args=(pending, until, clock), name="logs before a stop", daemon=True)
        )
        threads[-1].start()
    for thread in threads:
        thread.join(max(until - monotonic(), 0.0))


def _read_pending(pending: deque[EndedPod], until: float, clock: Clock) -> None:
    try:
        while monotonic() < until:
            try:
                pod = pending.popleft()
            except IndexError:
                return
            _read_one(pod, clock)
    finally:
        _BEFORE_STOP.release()
        connection.close()


def _read(pod: EndedPod, cluster: Cluster, clock: Clock) -> bool:
    """Whether the next log of the member may be read: it answered, and what it said is stored."""
    this = EndedPod.objects.filter(pk=pod.pk, due_at=pod.due_at)
    try:
        logs = read_logs(member_clients.client(cluster, timeout_s=_READ_S), pod, clock)
    except Gone:
        recording.settle_unread(this, "the pod was gone from its cluster before its log was read")
        return True
    except MemberAway as e:
        _put_off(cluster, clock(), f"the cluster gave no log: {e.message}")
        return False
    except (MemberError, ValueError, TypeError, LookupError) as e:
        if pod.tries + 1 >= _TRIES:
            problem = e.message if isinstance(e, MemberError) else type(e).__name__
            recording.settle_unread(this, f"the cluster gave no log: {problem}")
        else:
            this.update(due_at=clock() + _PAUSE)
        return True
    try:
        _keep(pod, logs)
    except storing.StoreFailed as e:
        log.warning("logs of ended pods cannot be stored", problem=str(e))
        _put_off(cluster, clock(), f"the log could not be stored: {e}")
        return False
    return True


def _put_off(cluster: Cluster, now: datetime, problem: str) -> None:
    """All logs of the cluster at once, since each would wait for the same silence; those that have waited too long are lost."""
    due = EndedPod.objects.filter(cluster=cluster, state=State.DUE)
    too_old = now - timedelta(seconds=settings.CONVOY_LOGS.away_s)
    recording.settle_unread(due.filter(ended_at__lt=too_old), problem)
    due.filter(ended_at__gte=too_old).update(due_at=now + _PAUSE, message=problem[:300])


def _keep(pod: EndedPod, logs: Found) -> None:
    """Files first: a row never names one that is not there."""
    for archived, packed in logs.logs:
        archived.number += 0 if pod.has_ended else _EARLY
        archived.is_early = not pod.has_ended
        if storing.is_outside():
            storing.write(pod.ref, archived.number, packed)
        else:
            archived.data = packed
    with transaction.atomic():
        replaced = _record(pod, logs)
    for replaced_number in replaced:
        storing.delete(pod.ref, replaced_number)


def _record(pod: EndedPod, logs: Found) -> list[int]:
    """Returns the numbers of the logs that these replace: those that were read before the pod's end."""
    current = EndedPod.objects.select_for_update().filter(pk=pod.pk, state=State.DUE).first()
    if current is None:
        return []
    early = list(current.logs.values_list("number", flat=True))
    if early and not logs.logs:
        recording.settle_unread(EndedPod.objects.filter(pk=pod.pk), "")
        return []
    current.logs.all().delete()
    ArchivedLog.objects.bulk_create([archived for archived, _ in logs.logs])
    current.stored_bytes = len(current.pod) + sum(len(packed) for _, packed in logs.logs)
    if current.has_ended == pod.has_ended:  # else its end was seen meanwhile, so that it is read again
        current.state, current.due_at = State.KEPT if logs.logs else State.LOST, None
        current.message = "; ".join(logs.missing)[:300]
    current.save(update_fields=["state", "due_at", "message", "stored_bytes"])
    return early if pod.has_ended else []


def possible_numbers(pod: EndedPod) -> set[int]:
    """Of the pod's logs, with those of a try that was broken off."""
    if pod.tries > 1:
        return {*range(CONTAINERS), *range(_EARLY, _EARLY + CONTAINERS)}
    return set(pod.logs.values_list("number", flat=True))


def read_logs(client: MemberClient, pod: EndedPod, clock: Clock) -> Found:
    """What the member has of the pod's logs. Raises Gone when it has the pod no more, or another one of its name."""
    path = PODS.path(pod.namespace, pod.name)
    containers = list(_containers(_same(client, path, pod)))[:CONTAINERS]
    logs, deadline = Found(), clock() + _LONGEST
    bounds = pod_logs.Bounds(settings.CONVOY_LOGS.container_lines, settings.CONVOY_LOGS.container_bytes)
    for at, (container, previous) in enumerate(containers):
        source = pod_logs.Source(pod.namespace, pod.name, container, previous, timestamps=True)
        try:
            content, is_cut = pod_logs.tail(
                client, source, bounds, read_timeout_s=_READ_S, is_over=lambda: clock() > deadline
            )
        except MemberRefused as e:
            if not previous:
                logs.missing.append(f"{container}: {e.message}")
            continue
        key, packed = storing.pack(content)
        row = ArchivedLog(pod=pod, number=at, container=container, previous=previous, is_cut=is_cut)
        row.text_bytes, row.key = len(content), key
        logs.logs.append((row, packed))
    if logs.logs:
        # What was read is the log of this pod only if no other one has taken its name meanwhile.
        with suppress(MemberMissing):
            _same(client, path, pod, or_missing=True)
    return logs


def _same(client: MemberClient, path: str, pod: EndedPod, *, or_missing: bool = False) -> Object:
    try:
        manifest = client.get(path)
    except MemberMissing as e:
        if or_missing:
            raise
        raise Gone from e
    if text(mapping(manifest.get("metadata")).get("uid")) != pod.uid:
        raise Gone
    return manifest


def _containers(manifest: Object) -> Iterator[tuple[str, bool]]:
    """Each container that has begun, and its run before where it was restarted."""
    spec, status = mapping(manifest.get("spec")), mapping(manifest.get("status"))
    for part, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        restarts = {text(each.get("name")): number(each.get("restartCount")) for each in mappings(status.get(statuses))}
        for container in mappings(spec.get(part)):
            name = text(container.get("name"))[:63]
            yield name, False
            if restarts.get(name, 0) > 0:
                yield name, True
