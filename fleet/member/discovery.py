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
_AT_ONCE = 6
_SCHEDULERS = {"koord-scheduler": "koord-app=koord-scheduler", "kube-scheduler": "component=kube-scheduler"}
"""How the pods of schedulers are labelled, by the scheduler; the first that is there counts."""


def version(client: MemberClient) -> str:
    return str(client.get("/version").get("gitVersion") or "")


def scheduler(client: MemberClient) -> str:
    """Name and version of the scheduler, by its pod, ``koord-scheduler:v1.6.0``; empty when none is to be seen."""
    for name, selector in _SCHEDULERS.items():
        try:
            found = client.get(PODS.path(), {"labelSelector": selector, "limit": "1"}).get("items") or []
        except (MemberMissing, MemberDenied):
            return ""
        images = [each["image"] for pod in found for each in pod["spec"]["containers"]]
        if images:
            return f"{name}:{images[0].rpartition('/')[2].partition(':')[2]}".rstrip(":")
    return ""


def identity(client: MemberClient) -> str:
    """The uid of the kube-system namespace; empty when it is missing or may not be read."""
    try:
        found = client.get(NAMESPACES.path(name="kube-system"))
    except (MemberMissing, MemberDenied):
        return ""
    return str((found.get("metadata") or {}).get("uid") or "")


def apis(client: MemberClient, before: Apis | None = None) -> Apis:
    """Every served kind and its plural. A group whose own server is down stays as it was ``before``."""
    roots = {"v1": "/api/v1"}
    for group in client.get("/apis").get("groups") or []:
        for each in group.get("versions") or []:
            roots[each["groupVersion"]] = f"/apis/{each['groupVersion']}"
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(partial(_kinds, client, before or {}), roots, roots.values())
        return {api_version: kinds for api_version, kinds in zip(roots, found, strict=True) if kinds}


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


def allowed(client: MemberClient, rights: Iterable[Right]) -> dict[Right, bool]:
    """What the member says about each of the rights."""
    rights = list(rights)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(rights, pool.map(partial(_review, client), rights), strict=True))


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
        f"{verb} {_name(resource)}" for (verb, resource), granted in zip(rights, answers, strict=True) if not granted
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


def _name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _review(client: MemberClient, right: Right) -> bool:
    plural, _, subresource = right.plural.partition("/")
    attributes: Object = {"verb": right.verb, "group": right.group, "resource": plural, "subresource": subresource}
    body: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool((client.create(_REVIEWS, body).get("status") or {}).get("allowed"))
