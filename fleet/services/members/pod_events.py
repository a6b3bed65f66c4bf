"""What members say of the pods of fleet jobs: their events, asked of the members when they are read, and kept nowhere.

A member's events are written by its tenants too: only those of a pod that the fleet knows, in the namespace that is read,
are shown, and of what they hold only what has the type that Kubernetes gives it.
"""

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from fleet.core.members import hub_names
from fleet.core.members.hub_names import hub_name
from fleet.core.members.typed_values import mapping, mappings, moment, number, text
from fleet.kube.resources import EVENTS, PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.models import Cluster, Pod
from fleet.services.members import impersonation, member_clients

MOST = 500
"""Events of one member in one answer."""
_AT_ONCE = 8
"""Members that are asked at the same time."""
_ANSWER_S = 3.0
_LONGEST_NAME = 200
"""Of a member's event: with its cluster it is a name of Kubernetes."""

Object = dict[str, Any]
Pods = Mapping[str, str]
"""Name in the cluster -> uid."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Of all members together."""

    events: list[Object]
    """As objects of the fleet, in the order of their names."""
    warnings: list[str]
    """Of which clusters there are none, and why."""


def of_pods(user: Any, namespace: str, hub: str = "") -> Answer:
    """The events of the namespace's pods, or of the one with this name at the fleet. Never fails for a member.

    Call it outside of a transaction.
    """
    pods: dict[int, dict[str, str]] = defaultdict(dict)
    rows = Pod.objects.filter(namespace=namespace)
    if hub:
        rows = rows.filter(cluster__name=hub_names.split(hub)[1])
    for cluster, cluster_name, name, uid in rows.values_list("cluster_id", "cluster__name", "name", "uid"):
        if not hub or hub_name(name, cluster_name) == hub:
            pods[cluster][name] = uid
    clusters = list(Cluster.objects.filter(pk__in=pods).order_by("name"))
    clients = [_client(cluster, user) for cluster in clusters]  # here, where there is a connection to the database
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="events") as pool:
        single = [next(iter(pods[cluster.pk])) if hub else "" for cluster in clusters]
        known = [pods[cluster.pk] for cluster in clusters]
        answers = list(pool.map(_of_cluster, clusters, clients, known, [namespace] * len(clusters), single))
    events = sorted(
        (event for found, _ in answers for event in found), key=lambda event: str(event["metadata"]["name"])
    )
    return Answer(events, [why for _, why in answers if why])


def _client(cluster: Cluster, user: Any) -> MemberClient | None:
    if cluster.state != Cluster.State.READY:
        return None
    try:
        return impersonation.in_name_of(member_clients.client(cluster, timeout_s=_ANSWER_S), cluster, user)
    except MemberError:
        return None


def _of_cluster(
    cluster: Cluster, client: MemberClient | None, pods: Pods, namespace: str, name: str
) -> tuple[list[Object], str]:
    if client is None:
        return [], f"cluster {cluster.name} gives no events: it does not answer"
    fields = ["involvedObject.kind=Pod", *([f"involvedObject.name={name}"] if name else [])]
    try:
        page = client.get(EVENTS.path(namespace), {"limit": str(MOST), "fieldSelector": ",".join(fields)})
    except MemberError as e:
        return [], f"cluster {cluster.name} gives no events: {e.message}"[:300]
    shown = (_at_fleet(event, cluster.name, pods, namespace) for event in mappings(page.get("items"))[:MOST])
    more = f"cluster {cluster.name} has more events of pods than the {MOST} that are shown"
    return [event for event in shown if event], more if mapping(page.get("metadata")).get("continue") else ""


def _at_fleet(event: Mapping[str, Any], cluster: str, pods: Pods, namespace: str) -> Object | None:
    """The event under the names of the fleet; None when it is not about one of the pods."""
    about, metadata = mapping(event.get("involvedObject")), mapping(event.get("metadata"))
    name, uid = text(about.get("name")), text(about.get("uid"))
    if name not in pods or uid != pods[name] or metadata.get("namespace") != namespace:
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
            "namespace": namespace,
            "uid": text(metadata.get("uid"))[:64] or own,
            "resourceVersion": "1",
            "creationTimestamp": created or last or None,
            "annotations": {"convoy.dev/cluster": cluster},
        },
        "involvedObject": {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "namespace": namespace,
            "name": hub_name(name, cluster),
            "uid": uid,
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
