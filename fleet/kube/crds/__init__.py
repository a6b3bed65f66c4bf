"""The CustomResourceDefinitions of the training kinds, stored as files.

Simulated members serve them, and the fleet uses their schemas for ``explain``, validation and defaults. Where a definition does
not describe a common part (pod templates, the spec of a Job, ``runPolicy``), the documents here add its description.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fleet.kube.resources import Resource
from fleet.kube.schema import builtin
from fleet.kube.schema.schemas import ANY, Schema, of_kind

Document = dict[str, Any]
TEMPLATE = "PodTemplateSpec"
_HERE = Path(__file__).parent
_REFERENCE = "#/components/schemas/"
_PODS = ("template", "submitterPodTemplate")
_JOB = ("template", "spec")
"""The path at which definitions have a Job template that they do not describe."""
_PART = "runPolicy"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Each process of the product reads the definitions once: 16 ms with libyaml, 116 ms without."""


@cache
def definitions() -> tuple[Document, ...]:
    """The definitions as they are sent to a member. They are cached: do not change them."""
    return tuple(_read(file) for file in sorted(_HERE.glob("*.yaml")))


@cache
def printed(resource: Resource) -> tuple[Document, ...]:
    """The ``additionalPrinterColumns`` of a kind that is defined here."""
    return tuple((_version(resource) or {}).get("additionalPrinterColumns") or ())


@cache
def short_names(resource: Resource) -> tuple[str, ...]:
    """The short names of a kind that is defined here."""
    for spec in (definition["spec"] for definition in definitions()):
        if (spec["group"], spec["names"]["plural"]) == (resource.group, resource.plural):
            return tuple(spec["names"].get("shortNames") or ())
    return ()


@cache
def document(resource: Resource) -> Document | None:
    """The OpenAPI schema of a kind that is defined here, with references to `components`. None for other kinds."""
    version = _version(resource)
    return None if version is None else _explained((), version["schema"]["openAPIV3Schema"])


def explained(resource: Resource, defined: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The schema ``defined`` by a member's definition; if that is the same as the one here, the extended one from here."""
    version = _version(resource)
    same = version is not None and version["schema"]["openAPIV3Schema"] == defined
    return document(resource) if same else defined


def components() -> dict[str, Document]:
    """The schemas that the documents refer to, by name."""
    return {**builtin.documents(TEMPLATE), **builtin.documents("JobSpec")}


@cache
def schema(resource: Resource) -> Schema | None:
    """The schema that reports unknown fields, also inside pod templates."""
    described = document(resource)
    return of_kind(described, _named) if described else None


@cache
def kept(resource: Resource) -> Schema | None:
    """The schema that drops unknown fields. It keeps them inside pod templates, where newer Kubernetes releases add fields."""
    described = document(resource)
    return of_kind(described, lambda name: ANY) if described else None


@cache
def defaults(resource: Resource) -> Schema | None:
    """The schema that adds the defaults of the definition to an object that is shown. None for a kind without defaults."""
    described = document(resource)
    return kept(resource) if described and _has_default(described) else None


def _has_default(node: Any) -> bool:
    if isinstance(node, dict):
        return "default" in node or any(_has_default(inner) for inner in node.values())
    return False


def _named(name: str) -> Schema:
    return builtin.of_type(name)


@cache
def _version(resource: Resource) -> Document | None:
    for definition in definitions():
        spec = definition["spec"]
        if (spec["group"], spec["names"]["plural"]) == (resource.group, resource.plural):
            for version in spec["versions"]:
                if version["name"] == resource.version:
                    return dict(version)
    return None


def _explained(path: tuple[str, ...], node: Document) -> Document:
    if _open(node) and path:
        if path[-1] in _PODS:
            return _refers(node, TEMPLATE)
        if path[-2:] == _JOB:
            return _refers(node, "JobSpec")
        if path[-1] == _PART:
            return _part(_PART)
    result = dict(node)
    if "properties" in node:
        result["properties"] = {name: _explained((*path, name), field) for name, field in node["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            result[inner] = _explained((*path, ""), node[inner])
    return result


def _open(node: Document) -> bool:
    return bool(node.get("x-kubernetes-preserve-unknown-fields")) and "properties" not in node


def _refers(node: Document, name: str) -> Document:
    return {"description": node["description"], "allOf": [{"$ref": f"{_REFERENCE}{name}"}]}


@cache
def _part(name: str) -> Document:
    return _read(_HERE / "parts" / f"{name}.yaml")


def _read(file: Path) -> Document:
    document: Document = yaml.load(file.read_bytes(), Loader=_LOADER)  # noqa: S506 - a safe one either way
    return document
