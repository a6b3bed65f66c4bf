"""What pods and nodes use, as the metrics servers of members measure it; asked when it is read, and kept nowhere."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import monotonic
from typing import Any

from fleet.db import connections
from fleet.kube.resources import Resource
from fleet.member import deadlines
from fleet.member.errors import MemberError
from fleet.models import Cluster
from fleet.services.members import member_clients

_AT_ONCE = 64
"""Questions that this process asks at the same time, of all requests together."""
_AT_ONE = 8
"""Of those, and of those that wait, at one member: one that is slow must not use up all threads."""
_ANSWER_S = 3.0
"""The longest that all of them together are waited for."""
_threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="metrics")
_under_way: Counter[str] = Counter()
_lock = threading.Lock()

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """A member's answer: its items by namespace and name, or why there are none."""

    cluster: str
    items: Mapping[tuple[str, str], Object]
    error: str = ""


def measured(resource: Resource, clusters: Iterable[Cluster], namespace: str = "") -> list[Measured]:
    """The answers of the members, in their order; never fails for one of them. No namespace: all of them."""
    rows = list(clusters)
    connections.give_back()  # members may take seconds, and other requests need it
    until = monotonic() + _ANSWER_S
    asked = {row.name: _asked(resource, row, namespace, until) for row in sorted(rows, key=_heard, reverse=True)}
    wait(asked.values(), _ANSWER_S)
    for answer in asked.values():
        answer.cancel()
    return [_answer_of(row.name, asked[row.name]) for row in rows]


def _asked(resource: Resource, cluster: Cluster, namespace: str, until: float) -> Future[Measured]:
    """At once an answer that says so, where the member has enough questions to answer."""
    name = cluster.name
    with _lock:
        if _under_way[name] >= _AT_ONE:
            full: Future[Measured] = Future()
            full.set_result(Measured(name, {}, f"{_AT_ONE} questions before this one wait for its answer"))
            return full
        _under_way[name] += 1
    question = _threads.submit(_in_time, resource, cluster, namespace, until)
    question.add_done_callback(lambda _: _ended(name))
    return question


def _ended(name: str) -> None:
    with _lock:
        _under_way[name] -= 1
        if not _under_way[name]:
            del _under_way[name]


def _in_time(resource: Resource, cluster: Cluster, namespace: str, until: float) -> Measured:
    """The request does not wait for the answer after that: no thread does either."""
    with deadlines.within(until - monotonic()):
        return _measured(resource, cluster, namespace)


def _heard(cluster: Cluster) -> float:
    """Who was heard last is asked first: those that are silent keep no other from being asked in time."""
    return cluster.last_heartbeat.timestamp() if cluster.last_heartbeat else 0.0


def _answer_of(name: str, asked: Future[Measured]) -> Measured:
    if asked.done() and not asked.cancelled():
        return asked.result()
    return Measured(name, {}, f"no answer within {_ANSWER_S:g} s")


def _measured(resource: Resource, cluster: Cluster, namespace: str) -> Measured:
    if cluster.state != Cluster.State.READY:
        return Measured(cluster.name, {}, "it does not answer")
    try:
        items = member_clients.client(cluster, timeout_s=_ANSWER_S).list(resource.path(namespace))["items"]
    except MemberError as e:
        return Measured(cluster.name, {}, e.message if e.status != 404 else "it has no metrics server")
    return Measured(cluster.name, {key: item for item in items if (key := _key(item))})


def _key(item: object) -> tuple[str, str] | None:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return (str(metadata.get("namespace") or ""), str(metadata.get("name"))) if isinstance(metadata, dict) else None
