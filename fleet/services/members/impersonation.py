"""Requests to members in the name of a person, where a cluster is set so: its own RBAC and audit see who asks.

The fleet's account asks and names the person in Kubernetes' impersonation headers. Names and groups have a prefix of their
own, so that no name of a user here is one that a member trusts already (``system:...``).
"""

from typing import Any

from fleet.errors import Unavailable, invalid
from fleet.member import discovery
from fleet.member.client import Impersonated, MemberClient
from fleet.member.errors import MemberError, MemberMissing
from fleet.models import Cluster
from fleet.services.authorization import access
from fleet.services.members import member_clients

PREFIX = "convoy:"
_EVERYBODY = "system:authenticated"
"""Kubernetes adds it only where no groups are named."""


def identity(user: Any) -> Impersonated:
    """How members know the user: ``convoy:NAME`` in the groups ``convoy:ROLE`` and ``convoy:ROLE:NAMESPACE`` of now."""
    held = {f"{PREFIX}{each.role}{f':{each.namespace}' if each.namespace else ''}" for each in access.roles(user)}
    return Impersonated(f"{PREFIX}{user.get_username()}", (*sorted(held), _EVERYBODY))


def in_name_of(client: MemberClient, cluster: Cluster, user: Any) -> MemberClient:
    """The client as it is where the cluster is not set so, and for None, the product itself."""
    return client.in_name_of(identity(user)) if cluster.impersonation and user is not None else client


def in_name_of_author(client: MemberClient, cluster: Cluster, username: str) -> MemberClient:
    """The same for the user of this name."""
    return in_name_of(client, cluster, access.user_named(username)) if cluster.impersonation and username else client


def missing_rights(cluster: Cluster) -> list[str]:
    """What the member does not let the fleet's account do; nothing where it cannot be asked for rights."""
    try:
        answers = discovery.allowed(member_clients.client(cluster), discovery.IMPERSONATION)
    except MemberMissing:
        return []
    except MemberError as e:
        raise Unavailable(f"cluster {cluster.name}: {e.message}") from e
    return [f"{right.verb} {right.resource}" for right, is_allowed in answers.items() if not is_allowed]


def require_rights(cluster: Cluster) -> None:
    if lacking := missing_rights(cluster):
        detail = f"{cluster.name} does not allow the fleet's account: {', '.join(lacking)}; grant that there first"
        raise invalid("impersonation", detail)
