"""Where the ranks of a job are now: the stacks in the logs of its pods, merged.

Processes print them when their runtime, a signal or a person with ``py-spy`` makes them. Here they are read from the ends of
the logs, in the name of who asks, and kept nowhere; by few at a time, so that memory does not grow with the pods.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic
from typing import Any

from fleet.core.members.pods import pod_details
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.models import Pod
from fleet.services.members import pod_logs
from fleet.services.members.pod_logs import Bounds, Source
from jobs.models import Job
from jobs.runtime import dumps, facts
from jobs.runtime.dumps import Dump
from jobs.runtime.stacks import Line, Tree
from jobs.services.inspect import runtime

PODS = 512
"""Logs that are read for one answer."""
_BOUNDS = Bounds(lines=3000, bytes=1024 * 1024)
_AT_ONCE = 16
_ANSWER_S = 30.0
_LINES = 5000
"""Frames of an answer."""
_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Stacks:
    lines: Sequence[Line]
    ranks: frozenset[int]
    """Those of which there are stacks."""
    suspects: frozenset[int]
    pods_without: Sequence[str]
    """Pods whose logs have no stacks."""
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class _OfPod:
    pod: Pod
    dumps: Sequence[Dump] = ()
    ranks: Sequence[int] = ()
    """As its runtime names them; empty: it does not."""
    error: str = ""


def of_job(job: Job, user: Any) -> Stacks:
    """The merged stacks of the attempts that count now. Never fails for a member."""
    with runtime.place():
        return _merge(job, user)


def _merge(job: Job, user: Any) -> Stacks:
    pods = runtime.pods_of(job)
    tree, without, warnings = Tree(), list[str](), list[str]()
    following = 0
    is_by_order = False
    for read in _logs(pods[:PODS], user):
        if read.error:
            warnings.append(read.error)
        elif not read.dumps:
            without.append(read.pod.name)
        ranked = _with_ranks(read, following)
        is_by_order |= any(dump.rank is None for dump in read.dumps) and not read.ranks
        for dump in ranked:
            tree.add(dump.rank or 0, dump.stacks)
        following += max(len(read.ranks), len(read.dumps), 1)
    if len(pods) > PODS:
        warnings.append(f"the logs of {PODS} of {len(pods)} pods are read")
    if is_by_order:
        warnings.append("ranks that no log names are by the order of the pods")
    lines = list(islice(tree.lines(), _LINES + 1))
    if tree.is_cut or len(lines) > _LINES:
        warnings.append(f"only the first {_LINES} frames are shown")
    more = [f"and {len(warnings) - _WARNINGS} more"] if len(warnings) > _WARNINGS else []
    return Stacks(lines[:_LINES], tree.ranks, tree.suspects(), without, [*warnings[:_WARNINGS], *more])


def _logs(pods: Sequence[Pod], user: Any) -> Iterator[_OfPod]:
    until = monotonic() + _ANSWER_S
    clients: dict[int, MemberClient | None] = {}
    for pod in pods:
        if pod.cluster_id not in clients:
            clients[pod.cluster_id] = runtime.client_for(pod.cluster, user)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="stacks") as pool:
        for start in range(0, len(pods), _AT_ONCE):
            few = pods[start : start + _AT_ONCE]
            yield from pool.map(lambda pod: _of_pod(pod, clients[pod.cluster_id], until), few)


def _of_pod(pod: Pod, client: MemberClient | None, until: float) -> _OfPod:
    if client is None:
        return _OfPod(pod, error=f"no log of {pod.name}: {pod.cluster} does not answer")
    if monotonic() > until:
        return _OfPod(pod, error=f"no log of {pod.name}: the logs of the others took {_ANSWER_S:.0f} s")
    source = Source(pod.namespace, pod.name, _container(pod), timestamps=True)
    limit = monotonic() + pod_logs.ANSWER_S
    try:
        content, _ = pod_logs.tail(
            client, source, _BOUNDS, read_timeout_s=pod_logs.ANSWER_S, is_over=lambda: monotonic() > limit
        )
    except MemberError as e:
        return _OfPod(pod, error=f"no log of {pod.name}: {e.message}"[:300])
    text = content.decode("utf-8", "replace")
    named = runtime.ranks_in(pod, facts.read(text, pod.name)).ranks
    return _OfPod(pod, dumps.read(text), named)


def _container(pod: Pod) -> str:
    """The first of several; of one it need not be named."""
    containers: Sequence[Any] = pod_details.parse(pod.details).get("containers") or []
    return str(containers[0].get("name") or "") if len(containers) > 1 else ""


def _with_ranks(read: _OfPod, following: int) -> list[Dump]:
    """The dumps of a pod with a rank each: the one that the log names, else those of its pod in their order.

    ``following`` is the first rank after those of the pods before it.
    """
    ranked = []
    for place, dump in enumerate(read.dumps):
        local = place if dump.local_rank is None else dump.local_rank
        of_pod = read.ranks[local] if local < len(read.ranks) else following + local
        ranked.append(dump if dump.rank is not None else replace(dump, rank=of_pod))
    return ranked
