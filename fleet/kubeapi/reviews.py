"""Questions about oneself: who am I, may I. Answered from the same rules every verb is checked by."""

from collections.abc import Sequence
from typing import Any

from fleet.kube import discovery
from fleet.kube.server.kinds import Object
from fleet.kube.server.paths import Catalog
from fleet.kube.server.reviews import ACCESS, RULES, WHOAMI, attributes_of
from fleet.kubeapi.objects.kinds import Kind
from fleet.services.authorization import access
from fleet.services.members import pod_tunnels
from fleet.services.members.proxying import TUNNELED

_READS = ("get", "list", "watch")
_WRITES = {"create": "apply", "update": "apply", "patch": "apply", "delete": "delete", "deletecollection": "delete"}


def status(review: str, spec: Object, user: Any, catalog: Catalog[Kind]) -> Object | None:
    """The answer to a review; None for one that is not served."""
    if review == WHOAMI:
        groups = sorted({f"convoy:{held.role}" for held in access.roles(user)})
        return {"userInfo": {"username": user.get_username(), "groups": groups}}
    if review == RULES:
        return _rules(str(spec.get("namespace") or ""), user, catalog)
    if review == ACCESS:
        allowed, reason = _may(attributes_of(spec), user, catalog)
        return {"allowed": allowed, "reason": reason}
    return None


def _rules(namespace: str, user: Any, catalog: Catalog[Kind]) -> Object:
    """Every kind with the verbs that are allowed in the namespace."""
    rules = []
    for kind in catalog:
        resource = kind.served.resource
        question = {"group": resource.group, "resource": resource.plural, "namespace": namespace}
        verbs = [verb for verb in kind.verbs if _may({**question, "verb": verb}, user, catalog)[0]]
        if verbs:
            rules.append({"verbs": verbs, "apiGroups": [resource.group], "resources": [resource.plural]})
    return {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}


def _may(attributes: dict[str, str], user: Any, catalog: Catalog[Kind]) -> tuple[bool, str]:
    verb, namespace = attributes.get("verb", ""), attributes.get("namespace", "")
    if attributes.get("resource") == "*" or verb == "*":
        whole = access.is_fleet_admin(user) and access.scope_of(user).verbs is None
        return whole, "" if whole else "it takes the role fleet-admin"
    kind = catalog.named(attributes.get("group", ""), attributes.get("resource", ""))
    subresource = attributes.get("subresource", "")
    if kind is None or verb not in _taken(kind, subresource):
        remedy = kind.remedies.get(verb, "") if kind and not subresource else ""
        return False, remedy or "nothing here takes that verb"
    if subresource == "proxy":
        return _may_pass(verb, user)
    right = pod_tunnels.RIGHT if subresource in TUNNELED else kind.read_verb if verb in _READS else _WRITES[verb]
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
