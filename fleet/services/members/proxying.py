"""A caller's request to a member through the fleet: what it asks, whether the caller may, and the member's answer.

The fleet's own credentials reach the member and are never handed out, so whatever would lend them (tokens of service
accounts, tunnels into pods and nodes, grants) is refused or an admin's. What an answer says is the member's business.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from django.conf import settings

from fleet.errors import Forbidden, InvalidInput, NotFound, Unavailable
from fleet.member.errors import MemberError
from fleet.member.passing import Passing
from fleet.member.streaming.following import Line
from fleet.models import Cluster
from fleet.services.authorization import access
from fleet.services.members import impersonation, member_clients

CONNECT_S = 5.0
"""A followed log may be silent for hours; a member ends its watches itself within one."""

_READS = ("GET",)
_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
TUNNELED = frozenset({"exec", "attach", "portforward"})
"""Subresources of pods that upgrade their connection. Passed on for pods of fleet jobs only: `pod_tunnels`."""
_TUNNELS = TUNNELED | {"proxy"}
_OPEN = ("version", "api", "apis", "openapi", "healthz", "livez", "readyz")
"""First path segments of requests about the server itself that read none of its objects."""
_OLD_ROOTS = frozenset({"watch", "proxy", "redirect"})
_OF_MEMBER = frozenset(
    {
        "nodes",
        "namespaces",
        "persistentvolumes",
        "storageclasses",
        "priorityclasses",
        "runtimeclasses",
        "customresourcedefinitions",
        "componentstatuses",
        "apiservices",
    }
)
"""Resources in no namespace that any role reads; of others without one, only who reads all namespaces."""
_GRANTING = frozenset({"rbac.authorization.k8s.io", "certificates.k8s.io", "admissionregistration.k8s.io"})
_FOR_ADMINS = frozenset({"resourcequotas", "limitranges", "bindings"})
"""What bounds a namespace, and what goes past the member's scheduler."""
_OF_CONTROLLERS = frozenset({"binding", "status"})
"""Subresources that are written by a member's own controllers. The fleet believes what they say, of nodes as well: a pod that
its node refused counts against that node for everyone.
"""
_HUSHED = {"secrets": "Secret", "configmaps": "ConfigMap"}
"""Read only by who may write them, as at the fleet's own door."""
_SAFE = ":@!$&'()*+,;=-._~"


@dataclass(frozen=True, slots=True)
class Call:
    """One request by its path and method; ``path`` is what the member is sent."""

    method: str
    path: str
    group: str = ""
    resource: str = ""
    """Empty: not about objects."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def writes(self) -> bool:
        return self.method not in _READS

    @property
    def verb(self) -> str:
        return access.READ if self.method in _READS else _WRITES[self.method]

    @property
    def kind(self) -> str:
        """As roles name it; an unknown resource stands for itself."""
        return _HUSHED.get(self.resource, self.resource) if not self.group else self.resource


def parse_call(method: str, raw_path: str) -> Call:
    """What is asked, from the still encoded path below ``proxy/``; nothing that two servers could read in two ways."""
    if method not in _READS and method not in _WRITES:
        raise InvalidInput(f"{method} is not passed on to a cluster")
    words = [_word(each) for each in raw_path.strip("/").split("/")] if raw_path.strip("/") else []
    path = "/" + "/".join(quote(word, safe=_SAFE) for word in words)
    match words:
        case ["api", _, first, *rest]:
            return _objects(Call(method, path), "", [first, *rest])
        case ["apis", group, _, first, *rest]:
            return _objects(Call(method, path), group, [first, *rest])
    return Call(method, path)


def log_of(namespace: str, pod: str) -> Call:
    """The call for the log of a pod; raises InvalidInput for a name that no pod has."""
    return pod_call("GET", namespace, pod, "log")


def pod_call(method: str, namespace: str, pod: str, subresource: str) -> Call:
    words = (_word(quote(part, safe="")) for part in ("api", "v1", "namespaces", namespace, "pods", pod, subresource))
    path = "/" + "/".join(quote(word, safe=_SAFE) for word in words)
    return Call(method, path, "", "pods", namespace, pod, subresource)


def require(user: access.Someone, call: Call) -> None:
    """Raises `Forbidden` unless the caller's roles at the fleet allow this call at the member."""
    if not call.resource:
        return _require_beside_objects(user, call)
    if call.subresource in _TUNNELS:
        raise Forbidden(
            f"{call.subresource} is not passed on to a cluster: exec, attach and port-forward work on the pods of fleet jobs "
            "at the fleet itself (kubectl without a cluster); for other pods use the cluster's own kubeconfig"
        )
    if (call.resource, call.subresource) == ("serviceaccounts", "token"):
        raise Forbidden("a cluster's credentials are not handed out: use the cluster's own kubeconfig to make a token")
    if call.writes and (not call.namespace or call.resource == "namespaces" or _for_admins(call)):
        return _require_admin(user, call, f"{call.verb} {call.resource} of a cluster")
    if not call.writes and not call.namespace and call.resource in _OF_MEMBER:
        return access.require(user, access.READ, "Node")
    if call.kind in _HUSHED.values() and not call.namespace:
        return _require_admin(user, call, f"{call.verb} {call.resource} of all namespaces of a cluster")
    if call.kind in _HUSHED.values() or call.writes:
        return access.require(user, "delete" if call.verb == "delete" else "apply", call.kind, call.namespace)
    return access.require(user, access.READ, call.kind, call.namespace)


def find(name: str) -> Cluster:
    row = Cluster.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f'clusters.cluster.karmada.io "{name}" not found')
    return row


def open_answer(
    cluster: Cluster, call: Call, user: Any, *, query: str, headers: dict[str, str], body: bytes, lasting: bool
) -> Passing:
    """The member's answer to the user; `Unavailable` names the cluster that gives none, or lets the fleet in no more."""
    target = call.path + (f"?{query}" if query else "")
    members = settings.CONVOY_MEMBERS
    idle_s = members.proxy_stream_idle_s if lasting else members.proxy_idle_s
    try:
        client = impersonation.in_name_of(member_clients.client(cluster, timeout_s=CONNECT_S), cluster, user)
        answer = client.passing(call.method, target, headers, body, idle_s=idle_s)
    except MemberError as e:
        raise unavailable(cluster, e) from e
    if refused := refused_status(cluster, answer.status):
        answer.close()
        raise refused
    return answer


def line_to(cluster: Cluster, user: Any) -> Line:
    """The way to the member for an answer that an event loop reads, in the user's name where impersonation is on."""
    try:
        known = member_clients.access_of(cluster)
        person = impersonation.identity(user).headers if cluster.impersonation else ()
        return Line.to(known, private_ok=settings.CONVOY_PRIVATE_MEMBERS, headers=tuple(person))
    except MemberError as e:
        raise unavailable(cluster, e) from e


def unavailable(cluster: Cluster, error: MemberError) -> Unavailable:
    return Unavailable(f"cluster {cluster.name}: {error.message}")


def refused_status(cluster: Cluster, status: int) -> Unavailable | None:
    """The error of an answer that is about the fleet itself, and not for the caller."""
    if status != 401 and not 300 <= status < 400:
        return None
    why = "refuses the fleet's credentials" if status == 401 else "answers with a redirect, which is refused"
    return Unavailable(f"cluster {cluster.name} {why}")


def _word(encoded: str) -> str:
    word = unquote(encoded)
    if not word or word in (".", "..") or any(c in "/\\?#%\ufffd" or not c.isprintable() for c in word):
        raise InvalidInput(f"the path has a part that is not passed on: {encoded[:80]!r}")
    return word


def _objects(call: Call, group: str, rest: list[str]) -> Call:
    namespace = ""
    if rest[0] in _OLD_ROOTS:
        raise NotFound(f"/{rest[0]}/ paths are not passed on: ask for the collection with ?watch=1")
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name, subresource, *_ = (*rest, "", "")
    return Call(call.method, call.path, group, resource, namespace, name, subresource)


def _for_admins(call: Call) -> bool:
    is_of_controller = call.writes and call.subresource in _OF_CONTROLLERS
    return call.group in _GRANTING or call.resource in _FOR_ADMINS or is_of_controller


def _require_beside_objects(user: access.Someone, call: Call) -> None:
    first = call.path.split("/")[1]
    if call.writes or first not in _OPEN:
        return _require_admin(user, call, f"{call.verb} {call.path} of a cluster")
    return access.require(user, access.READ, "Cluster")


def _require_admin(user: access.Someone, call: Call, what: str) -> None:
    right = access.READ if not call.writes else "delete" if call.verb == "delete" else "apply"
    if not access.is_fleet_admin(user) or not access.in_scope(user, right, call.kind, call.namespace):
        raise Forbidden(f"{user.get_username()} may not {what}: it takes the role {access.Role.FLEET_ADMIN.value}")
