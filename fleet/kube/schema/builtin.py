"""The schemas of the built-in kinds, and their OpenAPI documents."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from fleet.kube import resources
from fleet.kube.resources import Resource
from fleet.kube.schema.builtin_docs import DOCS
from fleet.kube.schema.builtin_types import TYPES
from fleet.kube.schema.schemas import ANY, METADATA, Schema, of_kind, parse_schema

_REFERENCE: Final = "#/components/schemas/"
_PLAIN: Mapping[str, dict[str, Any]] = {
    "s": {"type": "string"},
    "i": {"type": "integer", "format": "int64"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "t": {"type": "string", "format": "date-time", "nullable": True},
    "q": {"x-kubernetes-int-or-string": True},
    "p": {"x-kubernetes-int-or-string": True},
    "*": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_GROUPS = frozenset(
    {"", "batch", "coordination.k8s.io", "scheduling.k8s.io", "apiextensions.k8s.io", "resource.k8s.io"}
)
_ALWAYS: Mapping[Resource, dict[str, Any]] = {
    resources.PODS: {"spec": {"containers": None}, "status": {}},
    resources.JOBS: {"spec": {"template": {"metadata": {}, "spec": {"containers": None}}}, "status": {}},
    resources.SERVICES: {"spec": {}, "status": {"loadBalancer": {}}},
    resources.NODES: {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {}}, "nodeInfo": {}}},
    resources.EVENTS: {"involvedObject": {}, "source": {}},
    **dict.fromkeys((resources.NAMESPACES, resources.VOLUME_CLAIMS, resources.CRDS), {"spec": {}, "status": {}}),
}
"""The fields that an object of the kind always has, even if no client wrote them."""


def always(resource: Resource) -> dict[str, Any]:
    return {**_ALWAYS.get(resource, {}), "metadata": {}}


@cache
def schema(resource: Resource) -> Schema | None:
    """The schema of a built-in kind. None for other kinds."""
    return of_kind(_types()[resource.kind], _schema_of) if known(resource) else None


def known(resource: Resource) -> bool:
    return resource.group in _GROUPS and resource.kind in _types()


def documents(kind: str) -> dict[str, dict[str, Any]]:
    """The OpenAPI schemas of a kind and of all types that it contains, by name. They refer to each other."""
    collected: dict[str, dict[str, Any]] = {}
    pending = [kind]
    while pending:
        name = pending.pop()
        if name not in collected and name in _types():
            collected[name] = _types()[name]
            pending += _named(collected[name])
    return collected


def metadata_document() -> dict[str, Any]:
    """The OpenAPI schema of ObjectMeta."""
    described = {name: _of_schema(field) for name, field in METADATA.fields.items() if name != "managedFields"}
    for name, field in described.items():
        field["description"] = DOCS.get(f"ObjectMeta.{name}", "")
    managed = {"type": "array", "items": {"type": "object"}, "description": DOCS["ObjectMeta.managedFields"]}
    return {"type": "object", "description": DOCS["ObjectMeta"], "properties": {**described, "managedFields": managed}}


def _of_schema(described: Schema) -> dict[str, Any]:
    if described.type == "array":
        return {"type": "array", "items": _of_schema(described.items or ANY)}
    if described.extra is not None:
        return {"type": "object", "additionalProperties": _of_schema(described.extra)}
    if described.fields:
        return {"type": "object", "properties": {name: _of_schema(field) for name, field in described.fields.items()}}
    return {"type": described.type}


@cache
def _types() -> dict[str, dict[str, Any]]:
    joined = re.sub(r"\n +", " ", TYPES)
    return {
        name: _document(name, rest.split()) for name, _, rest in (line.partition(": ") for line in joined.splitlines())
    }


def _document(name: str, words: list[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for word in words:
        field, _, token = word.partition("=")
        if token:
            properties[field] = _described(_field(token.rstrip("!")), f"{name}.{field}")
            required += [field] if token.endswith("!") else []
    document = {"type": "object", "description": DOCS.get(name, ""), "properties": properties}
    if words[0] == "~":
        document["x-kubernetes-map-type"] = "atomic"
    return {**document, "required": required} if required else document


def _described(document: dict[str, Any], name: str) -> dict[str, Any]:
    described = {"description": DOCS[name]} if name in DOCS else {}
    if "$ref" in document:
        return {**described, "allOf": [document]}
    return {**document, **described}


def _field(token: str) -> dict[str, Any]:
    if token[0] == "[":
        inner, colon, keys = token[1:-1].partition(":")
        listed: dict[str, Any] = {"type": "array", "items": _field(inner)}
        if keys:
            return {**listed, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys.split(",")}
        return {**listed, "x-kubernetes-list-type": "set" if colon else "atomic"}
    if token[0] == "{":
        return {"type": "object", "additionalProperties": _field(token[1:-1])}
    plain, _, default = token.partition(":")
    if plain in _PLAIN:
        return {**_PLAIN[plain], "default": default} if default else dict(_PLAIN[plain])
    return {"$ref": _REFERENCE + plain}


def _named(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        if isinstance(reference := document.get("$ref"), str):
            yield reference.removeprefix(_REFERENCE)
        for inner in document.values():
            yield from _named(inner)
    elif isinstance(document, list):
        for inner in document:
            yield from _named(inner)


def of_type(name: str) -> Schema:
    """The schema of one type that built-in kinds contain."""
    return _schema_of(name)


@cache
def _schema_of(name: str) -> Schema:
    return METADATA if name == "ObjectMeta" else parse_schema(_types()[name], _schema_of)
