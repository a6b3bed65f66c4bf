"""The kinds whose manifests the fleet takes, and what may be written where in them: for editors that offer what comes next.

Read from the documents that explain the kinds to kubectl, without what only servers write. Asks the database nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from fleet.errors import FieldFault, NotFound
from fleet.kube import crds, openapi
from fleet.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    SIGS_POD_GROUPS,
    TRAINING_RUNTIMES,
)
from fleet.kube.schema import builtin, fields
from jobs.core.policies import overrides, propagation
from jobs.kinds import registry, schemas
from jobs.models import Dependent
from quotas.core.trees import parsing
from quotas.core.trees import schemas as quota_schemas

Document = dict[str, Any]
_OF_METADATA = ("name", "namespace", "labels", "annotations")


class Category(StrEnum):
    """What the manifests of a kind are for."""

    JOB = "job"
    POLICY = "policy"
    SUPPORT = "support"
    QUOTA = "quota"


@dataclass(frozen=True, slots=True)
class Known:
    """One kind that the fleet takes, with the words that people type for it."""

    api_version: str
    kind: str
    plural: str
    short_names: tuple[str, ...]
    category: Category
    description: str


_BUILT_IN = (*Dependent.KINDS, *Dependent.DEVICE_CLAIMS)
_SUPPORT = (*Dependent.KINDS, *Dependent.DEVICE_CLAIMS, *Dependent.RUNTIMES, Dependent.POD_GROUP)


def kinds() -> list[Known]:
    return [_known(*key, document.get("description", "")) for key, document in _documents().items()]


def _known(api_version: str, kind: str, description: str) -> Known:
    if job_kind := registry.find(api_version, kind):
        names = job_kind.resource.plural, job_kind.short_names
        return Known(api_version, kind, *names, Category.JOB, description)
    category = Category.SUPPORT if kind in _SUPPORT else Category.POLICY
    if kind in (parsing.KIND, PRIORITY_CLASSES.kind):
        category = Category.QUOTA
    return Known(api_version, kind, _plural(kind), (), category, description)


def _plural(kind: str) -> str:
    word = kind.lower()
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("ss") else f"{word}s"


def place(api_version: str, kind: str, path: Sequence[str]) -> fields.Place:
    """What the schema has at the path; nothing where it ends before."""
    document = _documents().get((api_version, kind))
    if document is None:
        message = f"no {kind} of {api_version} is taken here; GET /api/v1/schemas/ lists what is"
        raise NotFound(message, (FieldFault("kind", message),))
    return fields.at(document, _components(), path)


@cache
def _documents() -> Mapping[tuple[str, str], Document]:
    return {key: _written(openapi.whole(document)) for key, document in _described()}


def _described() -> Iterator[tuple[tuple[str, str], Document]]:
    for resource in (each.resource for each in registry.everything()):
        yield (resource.api_version, resource.kind), schemas.document(resource) or _builtin(resource.kind)
    for group in propagation.GROUPS:
        for kind in (*propagation.KINDS, *overrides.KINDS):
            yield (group, kind), schemas.policy(kind) or {}
    for kind in Dependent.KINDS:
        yield ("v1", kind), _builtin(kind)
    for kind in Dependent.DEVICE_CLAIMS:
        yield (RESOURCE_CLAIMS.api_version, kind), _builtin(kind)
    for runtime in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        yield (runtime.api_version, runtime.kind), crds.document(runtime) or {}
    yield (SIGS_POD_GROUPS.api_version, SIGS_POD_GROUPS.kind), crds.document(SIGS_POD_GROUPS) or {}
    yield (PRIORITY_CLASSES.api_version, PRIORITY_CLASSES.kind), _builtin(PRIORITY_CLASSES.kind)
    yield (parsing.API_VERSION, parsing.KIND), quota_schemas.DOCUMENT


def _builtin(kind: str) -> Document:
    return builtin.documents(kind)[kind]


def _written(document: Document) -> Document:
    return {**document, "properties": {k: v for k, v in document["properties"].items() if k != "status"}}


@cache
def _components() -> Mapping[str, Document]:
    metadata = builtin.metadata_document()
    written = {name: metadata["properties"][name] for name in _OF_METADATA}
    dependents = {name: each for kind in _BUILT_IN for name, each in builtin.documents(kind).items()}
    return {**crds.components(), **dependents, "ObjectMeta": {**metadata, "properties": written}}
