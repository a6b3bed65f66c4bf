"""The definitions of the kinds of training, as files: a member without operators is given them, the fleet explains by them.

Where a definition leaves something open that is the same everywhere (what pods are made of, how a job runs as a whole), the
document that explains it says more than the definition: a server would have to copy it into each.
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
"""Where a definition leaves a batch Job open."""
_PART = "runPolicy"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Each process of the product reads the definitions once: 16 ms with libyaml, 116 ms without."""


@cache
def definitions() -> tuple[Document, ...]:
    """Each as a member is sent it; not to be changed."""
    return tuple(_read(file) for file in sorted(_HERE.glob("*.yaml")))


@cache
def printed(resource: Resource) -> tuple[Document, ...]:
    """The columns that a kind defined here is printed with."""
    return tuple((_version(resource) or {}).get("additionalPrinterColumns") or ())


@cache
def short_names(resource: Resource) -> tuple[str, ...]:
    """What may be typed instead of the plural of a kind defined here."""
    for spec in (definition["spec"] for definition in definitions()):
        if (spec["group"], spec["names"]["plural"]) == (resource.group, resource.plural):
            return tuple(spec["names"].get("shortNames") or ())
    return ()


@cache
def document(resource: Resource) -> Document | None:
    """What explains the objects of a kind that is defined here, with references to `components`; None for others."""
    found = _version(resource)
    return None if found is None else _explained((), found["schema"]["openAPIV3Schema"])


def explained(resource: Resource, defined: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A definition's own document, or that of here if it is the definition of here."""
    found = _version(resource)
    same = found is not None and found["schema"]["openAPIV3Schema"] == defined
    return document(resource) if same else defined


def components() -> dict[str, Document]:
    """What the documents refer to."""
    return {**builtin.documents(TEMPLATE), **builtin.documents("JobSpec")}


@cache
def schema(resource: Resource) -> Schema | None:
    """Schema by which unknown fields are reported."""
    found = document(resource)
    return of_kind(found, _named) if found else None


@cache
def kept(resource: Resource) -> Schema | None:
    """By this, such fields are dropped: below pods, where every release of Kubernetes has new ones, none is."""
    found = document(resource)
    return of_kind(found, lambda name: ANY) if found else None


@cache
def defaults(resource: Resource) -> Schema | None:
    """By this, an object is shown with the defaults of its definition; None for a kind that has none."""
    found = document(resource)
    return kept(resource) if found and _has_default(found) else None


def _has_default(found: Any) -> bool:
    if isinstance(found, dict):
        return "default" in found or any(_has_default(each) for each in found.values())
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


def _explained(path: tuple[str, ...], found: Document) -> Document:
    if _open(found) and path:
        if path[-1] in _PODS:
            return _refers(found, TEMPLATE)
        if path[-2:] == _JOB:
            return _refers(found, "JobSpec")
        if path[-1] == _PART:
            return _part(_PART)
    made = dict(found)
    if "properties" in found:
        made["properties"] = {name: _explained((*path, name), each) for name, each in found["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(found.get(inner), dict):
            made[inner] = _explained((*path, ""), found[inner])
    return made


def _open(found: Document) -> bool:
    return bool(found.get("x-kubernetes-preserve-unknown-fields")) and "properties" not in found


def _refers(found: Document, name: str) -> Document:
    return {"description": found["description"], "allOf": [{"$ref": f"{_REFERENCE}{name}"}]}


@cache
def _part(name: str) -> Document:
    return _read(_HERE / "parts" / f"{name}.yaml")


def _read(file: Path) -> Document:
    document: Document = yaml.load(file.read_bytes(), Loader=_LOADER)  # noqa: S506 - a safe one either way
    return document
