"""What is written to a member through the fleet, held to the same rules as what the fleet itself takes in.

A body is judged as it is sent. The member puts a patch together with what is there, which this cannot see without asking it:
so operations that move what is there are refused, and a namespace of level restricted takes whole objects only.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fleet.core.security import pod_security
from fleet.core.security.pod_security import Level, Profile, Violation
from fleet.errors import FieldFault, Forbidden, InvalidInput, MalformedInput
from fleet.kube.requests import bodies, protobuf
from fleet.kube.requests.status import KubeError
from fleet.services.authorization import access, namespace_policies
from fleet.services.members.proxying import Call

_WRITES = frozenset({"POST", "PUT", "PATCH"})
_JSON_PATCH = "application/json-patch+json"
_OF_PODS = frozenset({"containers", "initContainers", "ephemeralContainers", "securityContext", "seccompProfile"})
_WITHOUT_PODS = frozenset({
    "configmaps", "endpoints", "events", "horizontalpodautoscalers", "ingresses", "leases", "limitranges", "networkpolicies",
    "persistentvolumeclaims", "poddisruptionbudgets", "resourcequotas", "rolebindings", "roles", "serviceaccounts", "services",
})  # fmt: skip
"""Kinds of Kubernetes itself that hold no pods: their protobuf bodies are passed on unread."""
_SHOWN = 5


def require(call: Call, raw: bytes, content_type: str) -> None:
    """Raises `Forbidden` naming each field that the namespace's policy does not allow."""
    if call.method not in _WRITES or not raw or not call.namespace or access.is_closed(call.namespace):
        return
    profile, is_secret = namespace_policies.profile(call.namespace), call.kind == "Secret"
    if profile.level is Level.PRIVILEGED and not is_secret:
        return
    documents = _documents(call, raw, content_type)
    if is_secret and any(_mentions_type(document) for document in documents):
        detail = f"{namespace_policies.TOKEN_SECRET} {namespace_policies.TOKEN_SECRET_REFUSED}"
        raise Forbidden(f"type {detail}", (FieldFault("type", detail),))
    if call.method == "PUT" and call.resource == "pods":
        profile = replace(profile, node_name=True)  # a pod that is there has a node, and keeps it
    refused = [each for document in documents for each in _violations(call, document, profile)]
    if refused:
        shown = "; ".join(f"{each.field} {each.detail}" for each in refused[:_SHOWN])
        faults = tuple(FieldFault(each.field, each.detail) for each in refused)
        what = f"{call.resource} {call.name}".strip()
        raise Forbidden(f"{what} violates level {profile.level} of namespace {call.namespace}: {shown}", faults)


def _documents(call: Call, raw: bytes, content_type: str) -> list[Any]:
    if "cbor" in content_type:
        raise InvalidInput("send workloads as JSON or YAML: the fleet looks at what they ask for")
    if raw.startswith(protobuf.MAGIC) and call.resource in _WITHOUT_PODS:
        return []  # only kinds of Kubernetes itself are sent so
    try:
        body = bodies.read(raw, content_type)
    except KubeError as e:
        raise MalformedInput(e.message) from e
    if body.duplicates:
        raise MalformedInput(f"{body.duplicates[0]} stands twice in the object")
    if call.method != "PATCH" or content_type != _JSON_PATCH:
        return [body.value]
    try:
        return list(pod_security.of_json_patch(body.value))
    except ValueError as e:
        raise InvalidInput(str(e)) from e


def _violations(call: Call, document: Any, profile: Profile) -> Iterator[Violation]:
    yield from pod_security.violations(document, profile, whole=call.method != "PATCH")
    if call.method == "PATCH" and profile.level is Level.RESTRICTED and _touches_pods(document):
        yield Violation("spec", "of pods cannot be patched here: send the whole object (kubectl replace)")


def _touches_pods(value: Any) -> bool:
    if isinstance(value, dict):
        return not _OF_PODS.isdisjoint(value) or any(map(_touches_pods, value.values()))
    return isinstance(value, list) and any(map(_touches_pods, value))


def _mentions_type(document: Any) -> bool:
    return isinstance(document, dict) and document.get("type") == namespace_policies.TOKEN_SECRET
