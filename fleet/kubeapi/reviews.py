"""Questions about oneself: who am I, may I. Answered from the same rules every verb is checked by."""

from collections.abc import Sequence
from typing import Any

from fleet.kube import discovery
from fleet.kubeapi.catalog import Catalog
from fleet.kubeapi.kinds import Kind, Object
from fleet.kubeapi.request import Request
from fleet.services import access

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_READS = ("get", "list", "watch")
_WRITES = {"create": "apply", "update": "apply", "patch": "apply", "delete": "delete", "deletecollection": "delete"}


def answer(asked: Request, user: Any, catalog: Catalog) -> Object:
    if asked.path.rstrip("/") == WHOAMI:
        groups = sorted({f"convoy:{held.role}" for held in access.roles(user)})
        info = {"username": user.get_username(), "groups": groups}
        return {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": {"userInfo": info}}
    if asked.path.rstrip("/") == RULES:
        return _rules(asked, user, catalog)
    attributes = _attributes(asked)
    allowed, reason = _may(attributes, user, catalog)
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
        "status": {"allowed": allowed, "reason": reason},
    }


def _rules(asked: Request, user: Any, catalog: Catalog) -> Object:
    """Every kind with the verbs that are allowed in the namespace."""
    spec = asked.document().get("spec")
    namespace = str(spec.get("namespace") or "") if isinstance(spec, dict) else ""
    rules = []
    for kind in catalog:
        resource = kind.served.resource
        question = {"group": resource.group, "resource": resource.plural, "namespace": namespace}
        verbs = [verb for verb in kind.verbs if _may({**question, "verb": verb}, user, catalog)[0]]
        if verbs:
            rules.append({"verbs": verbs, "apiGroups": [resource.group], "resources": [resource.plural]})
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": namespace},
        "status": {"resourceRules": rules, "nonResourceRules": [], "incomplete": False},
    }


def _may(attributes: dict[str, str], user: Any, catalog: Catalog) -> tuple[bool, str]:
    verb, namespace = attributes.get("verb", ""), attributes.get("namespace", "")
    if attributes.get("resource") == "*" or verb == "*":
        whole = any(held.role == access.Role.FLEET_ADMIN and not held.namespace for held in access.roles(user))
        return whole, "" if whole else "it takes the role fleet-admin"
    kind = catalog.named(attributes.get("group", ""), attributes.get("resource", ""))
    subresource = attributes.get("subresource", "")
    if kind is None or verb not in _taken(kind, subresource):
        remedy = kind.remedies.get(verb, "") if kind and not subresource else ""
        return False, remedy or "nothing here takes that verb"
    if subresource == "proxy":
        return _may_pass(verb, user)
    right = kind.read_verb if verb in _READS else _WRITES[verb]
    home = kind.home(namespace if kind.served.resource.namespaced else "", attributes.get("name", ""))
    if access.may(user, right, kind.name, home):
        return True, ""
    return False, access.refusal(user, right, kind.name, home).message


def _taken(kind: Kind, subresource: str) -> Sequence[str]:
    if not subresource:
        return kind.verbs
    shown = kind.shown
    return discovery.subresource_verbs(shown, subresource) if subresource in shown.subresources else ()


def _may_pass(verb: str, user: Any) -> tuple[bool, str]:
    """To a member: what exactly is asked for there decides, by the same roles."""
    if verb == "get" and access.may(user, access.READ, "Cluster"):
        return True, "what the caller may read in a cluster is what its roles let it read"
    if verb != "get" and access.may_somewhere(user, "apply", "Pod"):
        return True, "in a cluster the caller changes what is in the namespaces it edits"
    return False, access.refusal(user, access.READ if verb == "get" else "apply", "Pod").message


def _attributes(asked: Request) -> dict[str, str]:
    spec = asked.document().get("spec")
    attributes = spec.get("resourceAttributes") if isinstance(spec, dict) else None
    attributes = attributes if isinstance(attributes, dict) else {}
    return {key: value for key, value in attributes.items() if isinstance(value, str)}
