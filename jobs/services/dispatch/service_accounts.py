"""Whether a job's pods may do in a member what they have to, as their ServiceAccount; asked at join and before sending.

DLRover's master makes the workers itself: without the rights to do so it starts, and nothing ever trains. A member that does
not let us ask is sent the job.
"""

from fleet.member import discovery
from fleet.member.client import MemberClient
from fleet.member.errors import MemberDenied, MemberMissing
from fleet.services.members.event_handlers import AccountNeeds
from jobs.kinds import registry
from jobs.kinds.base import Kind, Manifest
from jobs.models import Job

_USUAL_NAMESPACE = "dlrover"
_NAMESPACES = 10


class AccountLacksRights(Exception):
    """Sent there the job could not run; the message names the ServiceAccount and what it lacks."""


def needs() -> list[AccountNeeds]:
    """By kind, for the namespaces of jobs that are not finished, or else the one that such jobs are usually in."""
    return [needed for kind in registry.everything() for needed in _of_kind(kind)]


def _of_kind(kind: Kind) -> list[AccountNeeds]:
    asked = kind.account_rights({})
    if asked is None:
        return []
    rows = Job.objects.filter(api_version=kind.resource.api_version, kind=kind.resource.kind)
    rows = rows.exclude(state__in=Job.FINISHED).order_by("namespace")
    namespaces = list(rows.values_list("namespace", flat=True).distinct()[:_NAMESPACES])
    return [
        AccountNeeds(kind.resource, asked.owner, asked.account, namespace, asked.rights)
        for namespace in namespaces or [_USUAL_NAMESPACE]
    ]


def check(client: MemberClient, kind: Kind, body: Manifest) -> None:
    """Raises `AccountLacksRights` when a pod of the job would lack a right that it needs."""
    asked = kind.account_rights(body)
    if asked is None:
        return
    namespace = body["metadata"]["namespace"]
    try:
        lacks = discovery.account_lacks(client, namespace, asked.account, asked.rights)
    except (MemberDenied, MemberMissing):
        return
    if lacks:
        what = f"ServiceAccount {asked.account} in namespace {namespace} may not {', '.join(lacks)}"
        raise AccountLacksRights(f"{what}, as {asked.owner} must: bind it to a role with these rights")
