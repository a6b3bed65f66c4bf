"""Checks whether the ServiceAccount of a job's pods has the permissions that the pods need in a member.

The check is made when a cluster joins and before a job is sent. DLRover's master creates the workers itself: without the
permission to do so, the master starts but the job never trains. If the member does not allow the check, the job is sent.
"""

from fleet.member import discovery
from fleet.member.client import MemberClient
from fleet.member.errors import MemberDenied, MemberMissing
from fleet.services.members.event_handlers import AccountNeeds
from jobs.kinds import registry
from jobs.kinds.base import Kind, Manifest
from jobs.models import Job

_DEFAULT_NAMESPACE = "dlrover"
_MAX_NAMESPACES = 10


class AccountLacksRights(Exception):
    """The job could not run in the member. The message names the ServiceAccount and the missing permissions."""


def needs() -> list[AccountNeeds]:
    """The permissions that the pods of each kind need, in the namespaces that have unfinished jobs of that kind.

    A kind without unfinished jobs is checked in `_DEFAULT_NAMESPACE`.
    """
    return [account_needs for kind in registry.everything() for account_needs in _needs_of_kind(kind)]


def _needs_of_kind(kind: Kind) -> list[AccountNeeds]:
    required = kind.account_rights({})
    if required is None:
        return []
    rows = Job.objects.filter(api_version=kind.resource.api_version, kind=kind.resource.kind)
    rows = rows.exclude(state__in=Job.FINISHED).order_by("namespace")
    namespaces = list(rows.values_list("namespace", flat=True).distinct()[:_MAX_NAMESPACES])
    return [
        AccountNeeds(kind.resource, required.owner, required.account, namespace, required.rights)
        for namespace in namespaces or [_DEFAULT_NAMESPACE]
    ]


def check(client: MemberClient, kind: Kind, body: Manifest) -> None:
    """Raises `AccountLacksRights` when the ServiceAccount of the job's pods lacks a permission that they need."""
    required = kind.account_rights(body)
    if required is None:
        return
    namespace = body["metadata"]["namespace"]
    try:
        missing = discovery.account_lacks(client, namespace, required.account, required.rights)
    except (MemberDenied, MemberMissing):
        return
    if missing:
        problem = f"ServiceAccount {required.account} in namespace {namespace} may not {', '.join(missing)}"
        raise AccountLacksRights(f"{problem}, as {required.owner} must: bind it to a role with these permissions")
