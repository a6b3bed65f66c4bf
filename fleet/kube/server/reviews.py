"""Reviews: questions about what a user may do, which are asked like a creation and stored nowhere."""

from collections.abc import Mapping

from fleet.kube.resources import ACCESS_REVIEWS
from fleet.kube.server.kinds import Object, method_not_allowed
from fleet.kube.server.request import Request

ACCESS, RULES, WHOAMI = "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SelfSubjectReview"
_KINDS: Mapping[str, str] = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ACCESS,
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": RULES,
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": WHOAMI,
    ACCESS_REVIEWS.path(): ACCESS_REVIEWS.kind,
}


def kind_of(request: Request) -> str:
    """The kind of review asked for; empty for every other request."""
    kind = _KINDS.get(request.path.rstrip("/"), "")
    if kind and request.method != "POST":
        raise method_not_allowed()
    return kind


def spec_of(request: Request) -> Object:
    spec = request.document().get("spec")
    return spec if isinstance(spec, dict) else {}


def attributes_of(spec: Object) -> dict[str, str]:
    """The ``resourceAttributes``, as far as they are text."""
    attributes = spec.get("resourceAttributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    return {key: value for key, value in attributes.items() if isinstance(value, str)}


def answer(request: Request, kind: str, status: Object) -> Object:
    api_version = "/".join(request.path.split("/")[2:4])
    return {**request.document(), "kind": kind, "apiVersion": api_version, "status": status}
