"""Asks a member everything the fleet wants to know before it trusts it, in one go and outside any transaction."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleet.errors import InvalidInput, Unavailable, invalid
from fleet.kube.resources import (
    ACCESS_REVIEWS,
    CONFIG_MAPS,
    CRDS,
    DEVICE_CLASSES,
    EVENTS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    RAY_CLUSTERS,
    RESERVATIONS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SCALE_INS,
    SCALE_OUTS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    SIGS_POD_GROUPS,
    TRAINING_RUNTIMES,
    VOLCANO_COMMANDS,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from fleet.member import discovery
from fleet.member.client import Access, MemberClient
from fleet.member.discovery import Apis, Right
from fleet.member.errors import MemberAway, MemberDenied, MemberError, MemberMissing
from fleet.services.members import event_handlers, member_clients
from fleet.services.members.event_handlers import AccountNeeds
from fleet.services.members.proxying import TUNNELED

TIMEOUT_S = 5.0
_WHOLE = ("get", "list", "watch", "create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Findings:
    """What a member said about itself. ``permissions`` as `Cluster.permissions` keeps them."""

    version: str
    member_uid: str
    apis: Apis
    permissions: list[dict[str, object]]
    scheduler: str = ""

    def rows_of_accounts(self) -> list[dict[str, object]]:
        """What ServiceAccounts of jobs' pods lack; the other rows are rights of our own."""
        return [row for row in self.permissions if row.get("account")]


def probe(access: Access, before: Apis | None = None) -> Findings:
    """Asks; raises `Unavailable` or `InvalidInput` with a sentence that says what to mend."""
    try:
        client = member_clients.connect(access, timeout_s=TIMEOUT_S)
        try:
            return ask(client, before)
        finally:
            client.close()
    except MemberDenied as e:
        raise invalid(
            "kubeconfig", f"{access.server} refuses the credentials ({e.message}): renew the token or certificate"
        ) from e
    except MemberAway as e:
        raise Unavailable(
            f"The cluster does not answer: {e.message}. Check the address, the CA and the firewall between."
        ) from e
    except MemberError as e:
        raise InvalidInput(f"{access.server} does not answer like a Kubernetes API server: {e.message}") from e


def ask(client: MemberClient, before: Apis | None = None) -> Findings:
    """As `probe`, over an open client and with the wire's own errors."""
    version = discovery.version(client)
    apis = discovery.apis(client, before)
    uid, scheduler = discovery.identity(client), discovery.scheduler(client)
    return Findings(version, uid, apis, _permissions(client, apis), scheduler)


def ask_again(client: MemberClient, before: Findings) -> Findings:
    """As `ask`, of a member that is known, in five requests at the most where it can list kinds and rules.

    Kinds of the core group are asked for when the version has changed. What ServiceAccounts lack stays as it was: each of their
    rights is a request of its own, and is checked anyway before a job is sent.
    """
    version = discovery.version(client)
    apis = discovery.apis(client, before.apis, core=version != before.version)
    permissions = _own_permissions(client, apis)
    permissions += before.rows_of_accounts() if permissions else []
    scheduler = discovery.scheduler(client, before.scheduler)
    return Findings(version, before.member_uid, apis, permissions, scheduler)


def missing_essentials(findings: Findings) -> list[str]:
    """What must be granted before the cluster is of any use, in words; empty when nothing is."""
    refused = [f"{p['verb']} {p['resource']}" for p in findings.permissions if p["essential"] and not p["allowed"]]
    kinds = [served for served in event_handlers.resources() if serves(findings.apis, served)]
    if event_handlers.resources() and not kinds:
        refused.append("a served kind of training job")
    elif kinds and findings.permissions and not any(_may_run(findings.permissions, kind) for kind in kinds):
        refused.append("create and delete of " + " or ".join(kind.qualified for kind in kinds))
    return refused


def serves(apis: Mapping[str, Mapping[str, str]], resource: Resource) -> bool:
    return resource.kind in apis.get(resource.api_version, {})


def definitions(apis: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The names that CustomResourceDefinitions of all served kinds would have: ``plural.group``."""
    return {f"{plural}.{version.partition('/')[0]}" for version, kinds in apis.items() for plural in kinds.values()}


def _may_run(permissions: Sequence[Mapping[str, object]], kind: Resource) -> bool:
    granted = {p["verb"] for p in permissions if p["resource"] == kind.qualified and p["allowed"]}
    return {"create", "delete"} <= granted


def _permissions(client: MemberClient, apis: Apis) -> list[dict[str, object]]:
    own = _own_permissions(client, apis)
    needed = [needs for needs in event_handlers.account_needs() if serves(apis, needs.kind)]
    return own + [row for needs in needed if own for row in _lacking(client, needs)]


def _own_permissions(client: MemberClient, apis: Apis) -> list[dict[str, object]]:
    """Empty where the member serves no access reviews."""
    try:
        answers = discovery.allowed(client, _rights(apis))
    except MemberMissing:
        return []
    return [
        _row(right.verb, right.resource, right.needed_for, allowed, right.essential)
        for right, allowed in answers.items()
    ]


def _lacking(client: MemberClient, needs: AccountNeeds) -> list[dict[str, object]]:
    """What pods of a kind's jobs may not do there as their ServiceAccount; nothing when we may not ask."""
    try:
        lacks = discovery.account_lacks(client, needs.namespace, needs.account, needs.rights)
    except (MemberMissing, MemberDenied):
        return []
    needed_for = f"{needs.owner} as ServiceAccount {needs.account} in namespace {needs.namespace}"
    verbs = (right.partition(" ") for right in lacks)
    return [_row(verb, resource, needed_for, allowed=False) | {"account": True} for verb, _, resource in verbs]


def _row(verb: str, resource: str, needed_for: str, allowed: bool, essential: bool = False) -> dict[str, object]:
    return {
        "verb": verb,
        "resource": resource,
        "allowed": allowed,
        "needed_for": needed_for,
        "essential": essential,
    }


_GANGS = ("get", "create", "patch", "delete")
_WHERE_SERVED = (
    (POD_GROUPS, "gangs and their sizes", _GANGS),
    (SIGS_POD_GROUPS, "gangs and their sizes", _GANGS),
    (VOLCANO_POD_GROUPS, "gangs and their sizes", _GANGS),
    (TRAINING_RUNTIMES, "the pods of TrainJobs", ("get", "create", "delete")),
    (RESERVATIONS, "holding capacity for gangs", ("list", "create", "delete")),
    (SCALE_INS, "resizing TrainingJobs", ("list", "create", "delete")),
    (SCALE_OUTS, "resizing TrainingJobs", ("list", "create", "delete")),
    (RAY_CLUSTERS, "resizing RayJobs", ("get", "patch")),
    (VOLCANO_COMMANDS, "suspending jobs of Volcano", ("create",)),
    (VOLCANO_QUEUES, "the queues of Volcano", ("get",)),
    (CRDS, "noticing new kinds at once", ("list", "watch")),
)


def _rights(apis: Apis) -> list[Right]:
    rights = [_right(verb, NODES, "capacity", essential=True) for verb in ("list", "watch")]
    rights += [_right(verb, PODS, "capacity and status", essential=True) for verb in ("list", "watch")]
    rights.append(_right("delete", PODS, "removing pods of lost nodes, and the grace of suspended ElasticJobs"))
    rights.append(_right("get", PODS, "streams to pods, and pods that a watch has not shown yet"))
    rights.append(Right("get", "", "pods/log", "logs"))
    rights += [Right("create", "", f"pods/{each}", "kubectl exec and its like") for each in sorted(TUNNELED)]
    for kind in event_handlers.resources():
        if serves(apis, kind):
            rights += [_right(verb, kind, f"running {kind.kind}") for verb in _WHOLE]
    if any(serves(apis, needs.kind) for needs in event_handlers.account_needs()):
        rights.append(_right("create", ACCESS_REVIEWS, "checking the rights of masters of ElasticJobs"))
    for dependent in (CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, VOLUME_CLAIMS):
        rights += [_right(verb, dependent, "what jobs depend on") for verb in ("get", "create", "patch", "delete")]
    rights += [_right(verb, NODES, "tainting excluded nodes, where that is asked for") for verb in ("get", "patch")]
    rights += [_right(verb, SERVICES, "checking nodes before a job starts") for verb in ("get", "create")]
    rights.append(_right("get", VOLUMES, "the nodes that reach the volumes of claims"))
    rights += [_right(verb, EVENTS, "why the cluster does not create a job's pods") for verb in ("list", "watch")]
    rights += [_right(verb, NAMESPACES, "the jobs' namespaces and their labels") for verb in ("get", "create", "patch")]
    rights += discovery.IMPERSONATION
    if serves(apis, RESOURCE_CLAIMS):
        rights += _rights_of_devices()
    rights += [
        _right(verb, resource, needed_for)
        for resource, needed_for, verbs in _WHERE_SERVED
        if serves(apis, resource)
        for verb in verbs
    ]
    return rights


def _rights_of_devices() -> Iterator[Right]:
    for kind in (RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS):
        yield from (_right(verb, kind, "capacity for ResourceClaims") for verb in ("list", "watch"))
    for kind in (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES):
        yield from (_right(verb, kind, "what jobs depend on") for verb in ("get", "create", "delete"))


def _right(verb: str, resource: Resource, needed_for: str, *, essential: bool = False) -> Right:
    return Right(verb, resource.group, resource.plural, needed_for, essential)
