"""What members say of the fleet's objects in them: events of pods and of the copies of jobs, asked when they are read.

They are kept nowhere for longer than a moment. A member's events are written by its tenants too: only those of an object that
the fleet knows by its uid, in the namespace that is read, are shown, and of what they hold only what has the type that
Kubernetes gives it.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

from fleet.core.members.hub_names import hub_name, kept_of, split
from fleet.core.members.typed_values import mapping, mappings, moment, number, text
from fleet.db import connections
from fleet.kube.resources import EVENTS, PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.models import Cluster, Pod
from fleet.services.members import impersonation, member_clients

MOST = 500
"""Events of one member in one answer."""
FRESH_S = 3.0
"""For which an answer is used again: many watches of a namespace ask a member as often as one."""
_REMEMBERED = 1000
_AT_ONCE = 8
"""Members that are asked at the same time."""
_ANSWER_S = 3.0
_LONGEST_NAME = 200
"""Of a member's event: with its cluster it is a name of Kubernetes."""

Object = dict[str, Any]
Namespaces = frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of the fleet that events of a member are about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    member_namespace: str


class Subjects(Protocol):
    """Which objects of members are of the fleet; the apps above register theirs."""

    def clusters(self, namespaces: Namespaces, kind: str, name: str) -> Mapping[int, str]:
        """Those that have such objects, each with a field selector of their events there; an empty kind or name is any."""

    def of_uids(self, cluster: Cluster, uids: Collection[str]) -> Mapping[str, Subject]:
        """The objects by their uids in the cluster."""


@dataclass(frozen=True, slots=True)
class Question:
    namespaces: Namespaces
    """None: all."""
    kind: str = ""
    name: str = ""
    """At the fleet."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Of all members together."""

    events: list[Object]
    """As objects of the fleet, in the order of their names."""
    warnings: list[str]
    """Of which clusters there are none, and why."""


class PodSubjects:
    def clusters(self, namespaces: Namespaces, kind: str, name: str) -> Mapping[int, str]:
        if kind not in ("", PODS.kind):
            return {}
        rows = Pod.objects.all() if namespaces is None else Pod.objects.filter(namespace__in=namespaces)
        in_member, cluster = split(name)
        if name:
            rows = rows.filter(cluster__name=cluster)
        of_name = f",involvedObject.name={in_member}" if name and not kept_of(name) else ""
        fields = f"involvedObject.kind={PODS.kind}{of_name}"
        return dict.fromkeys(rows.order_by().values_list("cluster_id", flat=True).distinct(), fields)

    def of_uids(self, cluster: Cluster, uids: Collection[str]) -> Mapping[str, Subject]:
        pods = Pod.objects.filter(uid__in=uids, cluster=cluster).values_list("namespace", "name", "uid")
        return {
            uid: Subject(PODS.api_version, PODS.kind, namespace, hub_name(name, cluster.name), uid, namespace)
            for namespace, name, uid in pods
        }


_registered: list[Subjects] = [PodSubjects()]


def register(subjects: Subjects) -> None:
    _registered.append(subjects)


def of(user: Any, question: Question) -> Answer:
    """The events of the objects that the question names. Never fails for a member. Call it outside of a transaction."""
    asked: dict[int, str] = {}
    for known in _registered:
        for pk, fields in known.clusters(question.namespaces, question.kind, question.name).items():
            asked[pk] = "" if pk in asked else fields
    clusters = list(Cluster.objects.filter(pk__in=asked).order_by("name"))
    clients = [_client(cluster, user) for cluster in clusters]  # here, where there is a connection to the database
    connections.give_back()  # members may take seconds, and other requests need it
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="events") as pool:
        pages = list(pool.map(lambda row, client: _page(row, client, asked, question, user), clusters, clients))
    events = [event for cluster, page in zip(clusters, pages, strict=True) for event in _known(cluster, page, question)]
    events.sort(key=lambda event: str(event["metadata"]["name"]))
    return Answer(events, [page.warning for page in pages if page.warning])


def _client(cluster: Cluster, user: Any) -> MemberClient | None:
    if cluster.state != Cluster.State.READY:
        return None
    try:
        return impersonation.in_name_of(member_clients.client(cluster, timeout_s=_ANSWER_S), cluster, user)
    except MemberError:
        return None


@dataclass(frozen=True, slots=True)
class _Page:
    items: Sequence[Mapping[str, Any]]
    warning: str = ""


def _page(
    cluster: Cluster, client: MemberClient | None, asked: Mapping[int, str], question: Question, user: Any
) -> _Page:
    if client is None:
        return _Page((), f"cluster {cluster.name} gives no events: it does not answer")
    namespace = next(iter(question.namespaces)) if question.namespaces and len(question.namespaces) == 1 else ""
    fields = asked[cluster.pk]
    whose = user.pk if cluster.impersonation and user is not None else None
    key = (cluster.pk, namespace, fields, whose)
    return _recent.get(key, lambda: _asked(cluster.name, client, namespace, fields))


def _asked(cluster: str, client: MemberClient, namespace: str, fields: str) -> _Page:
    params = {"limit": str(MOST), **({"fieldSelector": fields} if fields else {})}
    try:
        page = client.get(EVENTS.path(namespace), params)
    except MemberError as e:
        return _Page((), f"cluster {cluster} gives no events: {e.message}"[:300])
    more = f"cluster {cluster} has more events than the {MOST} that are looked at"
    return _Page(mappings(page.get("items"))[:MOST], more if mapping(page.get("metadata")).get("continue") else "")


class _Recent:
    """Answers of a moment ago. Of several callers that miss one, each asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: dict[tuple[Any, ...], tuple[float, _Page]] = {}

    def get(self, key: tuple[Any, ...], ask: Callable[[], _Page]) -> _Page:
        with self._lock:
            at, page = self._pages.get(key, (0.0, None))
        if page is not None and monotonic() - at < FRESH_S:
            return page
        page = ask()
        with self._lock:
            if len(self._pages) >= _REMEMBERED:
                self._pages.clear()
            self._pages[key] = (monotonic(), page)
        return page

    def clear(self) -> None:
        with self._lock:
            self._pages.clear()


_recent = _Recent()


def _known(cluster: Cluster, page: _Page, question: Question) -> list[Object]:
    """Those that are about an object of the fleet, in a namespace that is asked for."""
    uids = {uid for event in page.items if (uid := text(mapping(event.get("involvedObject")).get("uid")))}
    subjects: dict[str, Subject] = {}
    for known in _registered if uids else ():
        subjects |= known.of_uids(cluster, uids)
    shown = (_at_fleet(event, cluster.name, subjects, question) for event in page.items)
    return [event for event in shown if event]


def _at_fleet(
    event: Mapping[str, Any], cluster: str, subjects: Mapping[str, Subject], question: Question
) -> Object | None:
    """The event under the names of the fleet; None when it is not about one of the objects."""
    about, metadata = mapping(event.get("involvedObject")), mapping(event.get("metadata"))
    subject = subjects.get(text(about.get("uid")))
    if subject is None or metadata.get("namespace") != subject.member_namespace:
        return None
    if question.namespaces is not None and subject.namespace not in question.namespaces:
        return None
    created = moment(metadata.get("creationTimestamp"))
    last = moment(event.get("lastTimestamp")) or moment(event.get("eventTime")) or created
    component = text(mapping(event.get("source")).get("component")) or text(event.get("reportingComponent"))
    own = hub_name(text(metadata.get("name"))[:_LONGEST_NAME], cluster)
    return {
        "apiVersion": "v1",
        "kind": EVENTS.kind,
        "metadata": {
            "name": own,
            "namespace": subject.namespace,
            "uid": text(metadata.get("uid"))[:64] or own,
            "resourceVersion": "1",
            "creationTimestamp": created or last or None,
            "annotations": {"convoy.dev/cluster": cluster},
        },
        "involvedObject": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        },
        "type": "Warning" if event.get("type") == "Warning" else "Normal",
        "reason": text(event.get("reason")),
        "message": text(event.get("message")),
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": moment(event.get("firstTimestamp")) or last or None,
        "lastTimestamp": last or None,
        "count": max(number(event.get("count")), 1),
    }
