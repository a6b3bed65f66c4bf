"""exec, attach and port-forward into pods of fleet jobs: the right they need, and the request to the pod's member.

The fleet's credentials open the tunnel at the member and stay there: of what the caller sends, only the pod's streams reach
it. What flows is not looked at.
"""

from dataclasses import dataclass

from django.conf import settings

from fleet.errors import NotFound
from fleet.kube.resources import PODS
from fleet.member.errors import MemberError
from fleet.member.streaming.upgrading import Endpoint
from fleet.models import Cluster
from fleet.services.authorization import access
from fleet.services.members import impersonation, member_clients, member_objects, proxying
from fleet.services.members.proxying import TUNNELED, Call

RIGHT = "apply"
"""Commands in a pod change what its job does: they need the right to submit jobs."""


@dataclass(frozen=True, slots=True)
class Way:
    """To a pod of a member."""

    call: Call
    cluster: Cluster
    endpoint: Endpoint


def call_of(method: str, namespace: str, pod: str, subresource: str) -> Call:
    """The call of the member; raises InvalidInput for a name that no pod has."""
    return proxying.pod_call(method, namespace, pod, subresource)


def require(user: access.Someone, namespace: str) -> None:
    """Raises `Forbidden` unless the user may run commands in the namespace's pods."""
    access.require(user, RIGHT, PODS.kind, namespace)


def way(user: access.Someone, method: str, namespace: str, name: str, subresource: str) -> Way:
    """The way to the pod. The caller's right is asked for before the pod is looked up."""
    assert subresource in TUNNELED  # noqa: S101
    require(user, namespace)
    pod = member_objects.pod_meant(namespace, name)
    if pod is None:
        raise NotFound(f'pods "{name}" not found')
    cluster = proxying.find(pod.cluster.name)
    try:
        known = member_clients.access_of(cluster)
        person = impersonation.identity(user).headers if cluster.impersonation else ()
        endpoint = Endpoint.of(known, private_ok=settings.CONVOY_PRIVATE_MEMBERS, headers=tuple(person))
    except MemberError as e:
        raise proxying.unavailable(cluster, e) from e
    return Way(call_of(method, namespace, pod.name, subresource), cluster, endpoint)


def may_go_on(user: access.Someone, namespace: str, cluster: str) -> bool:
    """Whether a tunnel that is open may stay so: the right is still there, and the cluster still belongs to the fleet."""
    return access.may(user, RIGHT, PODS.kind, namespace) and Cluster.objects.filter(name=cluster).exists()
