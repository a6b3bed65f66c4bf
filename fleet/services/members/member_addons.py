"""The supervisor of elastic jobs as an add-on of a member: whether it is there and runs, asked live, and its installation.

What the member says is shown and never kept: a supervisor that the fleet believes in would be worse than one that it asks for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from fleet.changes import events, journal
from fleet.errors import Conflict, Forbidden, Unavailable, invalid
from fleet.kube.resources import LEASES, NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES, Resource
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberAway, MemberDenied, MemberError, MemberExists, MemberMissing
from fleet.models import Cluster
from fleet.services.members import member_clients

SUPERVISOR, NAMESPACE = "elastic-job-supervisor", "arena-system"
RUNNING, NOT_READY, NOT_INSTALLED, UNKNOWN = "Running", "NotReady", "NotInstalled", "Unknown"
_TIMEOUT_S = 5.0
_RBAC = "rbac.authorization.k8s.io"
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_KINDS = {
    each.kind: each
    for each in (
        NAMESPACES,
        SERVICE_ACCOUNTS,
        SERVICES,
        Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        _DEPLOYMENTS,
    )
}


@dataclass(frozen=True, slots=True)
class Addon:
    name: str
    cluster: str
    namespace: str
    state: str
    ready: int = 0
    pods: int = 0
    holder: str = ""
    """The process that acts."""
    renewed_at: str = ""
    """When it last said so, by the member's clock."""
    message: str = ""


def of(cluster: Cluster) -> list[Addon]:
    """Asks the member. One that does not answer, or may not be asked, is Unknown and says why."""
    client = member_clients.client(cluster, timeout_s=_TIMEOUT_S)
    try:
        return [_supervisor(client, cluster.name)]
    except MemberDenied as e:
        words = f"the fleet's account there needs the verbs get and list on pods, deployments and leases: {e.message}"
    except MemberError as e:
        words = e.message
    return [Addon(SUPERVISOR, cluster.name, NAMESPACE, UNKNOWN, message=words[:300])]


def _supervisor(client: MemberClient, cluster: str) -> Addon:
    pods = client.list(PODS.path(NAMESPACE), {"labelSelector": f"app={SUPERVISOR}"}).get("items") or []
    wanted = len(pods) or _replicas(client)
    if not wanted:
        return Addon(SUPERVISOR, cluster, NAMESPACE, NOT_INSTALLED)
    ready = sum(map(_is_ready, pods))
    holder, renewed_at = _lease(client)
    message = "" if ready else next(filter(None, map(_why, pods)), "none of its pods is ready")
    state = RUNNING if ready else NOT_READY
    return Addon(SUPERVISOR, cluster, NAMESPACE, state, ready, wanted, holder, renewed_at, message[:300])


def _replicas(client: MemberClient) -> int:
    """Of its Deployment; none where there is no Deployment, or the member serves none."""
    try:
        deployment = client.get(_DEPLOYMENTS.path(NAMESPACE, SUPERVISOR))
    except MemberMissing:
        return 0
    replicas = _part(deployment, "spec").get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _lease(client: MemberClient) -> tuple[str, str]:
    try:
        spec = _part(client.get(LEASES.path(NAMESPACE, SUPERVISOR)), "spec")
    except MemberMissing:
        return "", ""
    return str(spec.get("holderIdentity") or "")[:253], str(spec.get("renewTime") or "")[:40]


def _is_ready(pod: Object) -> bool:
    conditions = _part(pod, "status").get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _why(pod: Object) -> str:
    for container in _part(pod, "status").get("containerStatuses") or []:
        waiting = _part(container, "state").get("waiting") or {}
        if waiting.get("reason"):
            return f"{waiting['reason']}: {waiting.get('message') or ''}".rstrip(": ")
    return ""


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def install(cluster: Cluster, image: str, *, by: str, now: datetime) -> list[Addon]:
    """Creates what the manifests of the supervisor say, or brings it up to them. The same call again is the way to mend one."""
    if not image or any(not letter.isprintable() or letter.isspace() for letter in image):
        raise invalid(
            "image", "is the product's image as the cluster pulls it, such as registry.example.com/convoy:1.0"
        )
    client = member_clients.client(cluster)
    for document in _documents(image):
        kind = _KINDS[document["kind"]]
        label = f"{kind.kind} {document['metadata']['name']}"
        try:
            _apply(client, kind, document)
        except MemberDenied as e:
            detail = f"{e.message}; grant it, or apply deploy/supervisor-manifests/supervisor.yaml with kubectl"
            raise Forbidden(f"cluster {cluster.name} does not allow to create {label}: {detail}") from e
        except MemberAway as e:
            raise Unavailable(f"cluster {cluster.name} does not answer: {e.message}; ask again when it does") from e
        except MemberMissing as e:
            hint = "a simulated member has its supervisor by its configuration" if cluster.simulated else e.message
            raise Conflict(f"cluster {cluster.name} does not serve {kind.qualified}: {hint}") from e
        except MemberError as e:
            raise Conflict(f"cluster {cluster.name} refused {label}: {e.message}") from e
    change = journal.Change("Cluster", "", cluster.name, str(cluster.uid), journal.Action.MODIFIED)
    events.record(change, "SupervisorInstalled", f"{by} installed {SUPERVISOR} of {image}", now)
    return of(cluster)


def _documents(image: str) -> Iterator[Object]:
    for document in yaml.safe_load_all(Path(settings.SUPERVISOR_MANIFEST).read_text()):
        if document["kind"] == _DEPLOYMENTS.kind:
            document["spec"]["template"]["spec"]["containers"][0]["image"] = image
        yield document


def _apply(client: MemberClient, kind: Resource, document: Object) -> None:
    namespace, name = document["metadata"].get("namespace", ""), document["metadata"]["name"]
    try:
        client.create(kind.path(namespace), document)
    except MemberExists:
        client.merge_patch(kind.path(namespace, name), {key: document[key] for key in document if key != "metadata"})
