"""What a member is and serves: identity, version, kinds; and what our credentials may do there.

Reads only, and always asks the member: nothing is assumed from its version.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from fleet.kube.resources import ACCESS_REVIEWS, NAMESPACES, PODS, Resource
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberAway, MemberDenied, MemberMissing

Apis = dict[str, dict[str, str]]
"""``{"kubeflow.org/v1": {"PyTorchJob": "pytorchjobs"}}``"""
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_RULES_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_NO_NAMESPACE = "convoy-all-namespaces"
"""A namespace that does not exist: rules for it are those that hold in every namespace, without those bound in one."""
_AGGREGATED = ",".join(
    [
        *(f"application/json;g=apidiscovery.k8s.io;v={v};as=APIGroupDiscoveryList" for v in ("v2", "v2beta1")),
        "application/json",
    ]
)
_AT_ONCE = 6
_SCHEDULERS = {"koord-scheduler": "koord-app=koord-scheduler", "kube-scheduler": "component=kube-scheduler"}
"""How the pods of schedulers are labelled, by the scheduler; the first that is there counts."""


def version(client: MemberClient) -> str:
    return str(client.get("/version").get("gitVersion") or "")


def scheduler(client: MemberClient, before: str = "") -> str:
    """Name and version of the scheduler, by its pod, ``koord-scheduler:v1.6.0``; empty when no pod of one is visible.

    The one that was there ``before`` is looked for first: as long as it stays, that is one request.
    """
    for name in sorted(_SCHEDULERS, key=lambda name: not before.startswith(name)):
        try:
            pods = client.get(PODS.path(), {"labelSelector": _SCHEDULERS[name], "limit": "1"}).get("items") or []
        except (MemberMissing, MemberDenied):
            return ""
        images = [container["image"] for pod in pods for container in pod["spec"]["containers"]]
        if images:
            return f"{name}:{images[0].rpartition('/')[2].partition(':')[2]}".rstrip(":")
    return ""


def identity(client: MemberClient) -> str:
    """The uid of the kube-system namespace; empty when it is missing or may not be read."""
    try:
        namespace = client.get(NAMESPACES.path(name="kube-system"))
    except (MemberMissing, MemberDenied):
        return ""
    return str((namespace.get("metadata") or {}).get("uid") or "")


def apis(client: MemberClient, before: Apis | None = None, *, core: bool = True) -> Apis:
    """Every served kind and its plural. A group whose own server is down stays as it was ``before``.

    One request for all groups where the member aggregates them (Kubernetes 1.27 and later), else one a version. The
    kinds of the core group are part of a release: without ``core`` they are taken from ``before``.
    """
    before = before or {}
    known = {"v1": before["v1"]} if not core and "v1" in before else _group_apis(client, "/api", before)
    return known | _group_apis(client, "/apis", before)


def _group_apis(client: MemberClient, root: str, before: Apis) -> Apis:
    answer = client.get(root, accept=_AGGREGATED)
    if answer.get("kind") == "APIGroupDiscoveryList":
        return _read_aggregated(answer, before)
    if root == "/api":
        return {"v1": kinds} if (kinds := _kinds(client, before, "v1", "/api/v1")) else {}
    roots = [each["groupVersion"] for group in answer.get("groups") or [] for each in group.get("versions") or []]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(partial(_kinds, client, before), roots, [f"/apis/{each}" for each in roots])
        return {api_version: kinds for api_version, kinds in zip(roots, answers, strict=True) if kinds}


def _read_aggregated(answer: Object, before: Apis) -> Apis:
    served: Apis = {}
    for group in answer.get("items") or []:
        name = (group.get("metadata") or {}).get("name") or ""
        for each in group.get("versions") or []:
            api_version = f"{name}/{each['version']}" if name else each["version"]
            resources = each.get("resources") or []
            kinds = {kind: r["resource"] for r in resources if (kind := (r.get("responseKind") or {}).get("kind"))}
            if each.get("freshness") == "Stale":
                # The group's own server does not answer: the list may be empty, which does not mean that nothing is served.
                kinds = before.get(api_version) or kinds
            if kinds:
                served[api_version] = kinds
    return served


def _kinds(client: MemberClient, before: Apis, api_version: str, path: str) -> dict[str, str]:
    try:
        served = client.get(path).get("resources") or []
    except MemberMissing:
        return {}
    except MemberAway:
        if api_version == "v1":
            raise
        return before.get(api_version, {})
    return {each["kind"]: each["name"] for each in served if "/" not in each["name"]}


@dataclass(frozen=True, slots=True)
class Right:
    """Something our credentials have to be allowed to do, in all namespaces."""

    verb: str
    group: str
    plural: str
    needed_for: str
    essential: bool = False

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_FOR_PERSONS = "requests in the name of a person, where the cluster is set so"
IMPERSONATION = tuple(Right("impersonate", "", plural, _FOR_PERSONS) for plural in ("users", "groups"))


def allowed(client: MemberClient, rights: Iterable[Right]) -> dict[Right, bool]:
    """Which of the rights the member grants.

    One request where the member lists our rules. It asks about each right that is not in the list only where the list may be
    incomplete (an authorizer that cannot list, such as a webhook).
    """
    rights = list(rights)
    rules, is_complete = _own_rules(client)
    granted = {right: any(_covers(rule, right) for rule in rules) for right in rights}
    unknown = [] if is_complete else [right for right in rights if not granted[right]]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return granted | dict(zip(unknown, pool.map(partial(_review, client), unknown), strict=True))


def _own_rules(client: MemberClient) -> tuple[list[Object], bool]:
    """The rules that hold for our credentials in all namespaces, and whether these are all there are."""
    body: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": _NO_NAMESPACE},
    }
    try:
        status = client.create(_RULES_REVIEWS, body).get("status") or {}
    except (MemberMissing, MemberDenied):
        return [], False
    return status.get("resourceRules") or [], not status.get("incomplete") and not status.get("evaluationError")


def _covers(rule: Object, right: Right) -> bool:
    """Whether an RBAC rule grants the right on every object of the kind."""
    resource, _, subresource = right.plural.partition("/")
    names = {"*", right.plural} | ({f"*/{subresource}"} if subresource else set())
    return (
        not rule.get("resourceNames")
        and bool({"*", right.verb} & set(rule.get("verbs") or ()))
        and bool({"*", right.group} & set(rule.get("apiGroups") or ()))
        and bool(names & set(rule.get("resources") or ()))
    )


def account_lacks(
    client: MemberClient, namespace: str, account: str, rights: Iterable[tuple[str, Resource]]
) -> list[str]:
    """Which of the rights, as ``create pods``, a ServiceAccount lacks in its namespace.

    Raises `MemberDenied` when our credentials may not ask, `MemberMissing` when the member serves no such reviews.
    """
    rights = list(rights)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(partial(_review_account, client, namespace, account), rights))
    return [
        f"{verb} {resource.qualified}" for (verb, resource), granted in zip(rights, answers, strict=True) if not granted
    ]


def _review_account(client: MemberClient, namespace: str, account: str, right: tuple[str, Resource]) -> bool:
    verb, resource = right
    attributes = {"verb": verb, "group": resource.group, "resource": resource.plural, "namespace": namespace}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    spec: Object = {
        "user": f"system:serviceaccount:{namespace}:{account}",
        "groups": groups,
        "resourceAttributes": attributes,
    }
    body: Object = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool((client.create(ACCESS_REVIEWS.path(), body).get("status") or {}).get("allowed"))


def _review(client: MemberClient, right: Right) -> bool:
    plural, _, subresource = right.plural.partition("/")
    attributes: Object = {"verb": right.verb, "group": right.group, "resource": plural, "subresource": subresource}
    body: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool((client.create(_REVIEWS, body).get("status") or {}).get("allowed"))
