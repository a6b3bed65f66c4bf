"""Overrides carried out on one copy of a job, for the cluster it goes to. Pure; the manifest given stays as it is.

Cluster-wide policies come first, then those of the namespace; of each the wider selector before the closer, then by name: so
the closest has the last word. What does not apply raises `CannotOverride`: a copy is sent as it should be, or not at all.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jobs.core.manifest_fields import Manifest
from jobs.core.policies.overrides import Image, Notes, OverrideSpec, Patch, Step, Words


class Destination(Protocol):
    """What rules look at of the cluster a copy goes to."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def places(self) -> Mapping[str, str]: ...


Templates = Callable[[Manifest], Iterable[tuple[str, Manifest]]]
"""The roles and pod templates inside a manifest, themselves."""


class CannotOverride(Exception):
    """Says which policy, and what of it does not fit the job."""


@dataclass(frozen=True, slots=True)
class Override:
    """A stored policy."""

    namespace: str
    """Empty: cluster-wide."""
    name: str
    spec: OverrideSpec

    def __str__(self) -> str:
        return (
            f"OverridePolicy {self.namespace}/{self.name}" if self.namespace else f"ClusterOverridePolicy {self.name}"
        )

    def precision(self, manifest: Manifest) -> int | None:
        """How closely it selects the job; None: not at all."""
        metadata = manifest["metadata"]
        namespace = metadata["namespace"]
        if self.namespace not in ("", namespace):
            return None
        if not self.spec.selectors:
            return 0
        job = manifest["apiVersion"], manifest["kind"], namespace, metadata["name"], metadata.get("labels") or {}
        return max((each.precision for each in self.spec.selectors if each.matches(*job)), default=None)


def overridden(
    manifest: Manifest, policies: Iterable[Override], cluster: Destination, templates: Templates
) -> tuple[Manifest, list[str]]:
    """A copy as it is to be on ``cluster``, and the policies that had a say in it."""
    ranked = [(bool(p.namespace), rank, p.name, p) for p in policies if (rank := p.precision(manifest)) is not None]
    body, names = copy.deepcopy(manifest), []
    for *_, policy in sorted(ranked, key=lambda each: each[:3]):
        steps = _steps(policy.spec, cluster)
        for step in steps:
            try:
                _apply_step(step, body, templates)
            except CannotOverride as e:
                raise CannotOverride(f"{policy} does not apply: {e}") from e
        if steps:
            names.append(str(policy))
    return body, names


def _steps(spec: OverrideSpec, cluster: Destination) -> list[Step]:
    rules = [each for each in spec.rules if each.clusters.allows(cluster.name, cluster.labels, cluster.places)]
    return [step for rule in rules for step in rule.steps]


def _apply_step(step: Step, body: Manifest, templates: Templates) -> None:
    match step:
        case Patch():
            _patch(step, body)
        case Image():
            _images(step, body, templates)
        case Words():
            _words(step, body, templates)
        case Notes():
            _notes(step, body)


def _images(step: Image, body: Manifest, templates: Templates) -> None:
    if step.path:
        parent, last = _parent(body, step.path)
        image = _at(parent, last, step.path)
        if not isinstance(image, str):
            raise CannotOverride(f"{step.path} is no image")
        parent[last] = renamed(image, step)
        return
    for container in _containers(body, templates):
        if isinstance(container.get("image"), str):
            container["image"] = renamed(container["image"], step)


def renamed(image: str, step: Image) -> str:
    """``registry/repository:tag`` or ``...@digest`` with one part changed; ``add`` appends to the part, as Karmada does."""
    registry, repository, tag = _parted(image)
    match step.component:
        case "Registry":
            registry = _changed(registry, step)
        case "Repository":
            repository = _changed(repository, step)
        case _:
            mark = tag[:1] if tag else ":"
            changed = _changed(tag[1:], step)
            tag = f"{mark}{changed}" if changed else ""
    return f"{registry}/{repository}{tag}" if registry else f"{repository}{tag}"


def _parted(image: str) -> tuple[str, str, str]:
    """The first word is a registry if it looks like a host; the tag keeps its mark."""
    first, slash, rest = image.partition("/")
    host = slash and ("." in first or ":" in first or first == "localhost")
    registry, rest = (first, rest) if host else ("", image)
    name, at, digest = rest.partition("@")
    if at:
        return registry, name, f"@{digest}"
    name, colon, tag = rest.partition(":")
    return registry, name, f":{tag}" if colon else ""


def _changed(part: str, step: Image) -> str:
    return {"add": part + step.value, "replace": step.value}.get(step.operator, "")


def _words(step: Words, body: Manifest, templates: Templates) -> None:
    containers = [each for each in _containers(body, templates) if each.get("name") == step.container]
    if not containers:
        raise CannotOverride(f"no container is called {step.container}")
    for container in containers:
        words = list(container.get(step.field) or [])
        if step.operator == "add":
            container[step.field] = words + list(step.values)
        else:
            container[step.field] = [word for word in words if word not in step.values]


def _containers(body: Manifest, templates: Templates) -> list[Manifest]:
    specs = [template.get("spec") or {} for _, template in templates(body)]
    containers = [each for spec in specs for key in ("initContainers", "containers") for each in spec.get(key) or []]
    return [each for each in containers if isinstance(each, dict)]


def _notes(step: Notes, body: Manifest) -> None:
    """``replace`` changes only what is there."""
    values = body["metadata"].setdefault(step.field, {})
    for key, value in step.values.items():
        if step.operator == "remove":
            values.pop(key, None)
        elif step.operator == "add" or key in values:
            values[key] = value


def _patch(step: Patch, body: Manifest) -> None:
    """One operation of a JSON patch. Labels and annotations may be added where there are none yet."""
    if step.path.startswith(("/metadata/labels/", "/metadata/annotations/")):
        body["metadata"].setdefault(step.path.split("/")[2], {})
    parent, last = _parent(body, step.path)
    if step.operator != "add":
        _at(parent, last, step.path)
    if step.operator == "remove":
        del parent[last]
    elif step.operator == "add" and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(step.value))
    else:
        parent[last] = copy.deepcopy(step.value)


def _parent(body: Manifest, pointer: str) -> tuple[Any, Any]:
    """What holds the place, and its key or index there."""
    words = [word.replace("~1", "/").replace("~0", "~") for word in pointer.split("/")[1:]]
    here: Any = body
    for word in words[:-1]:
        here = _at(here, _key(here, word, pointer), pointer)
    return here, _key(here, words[-1], pointer)


def _key(here: object, word: str, pointer: str) -> Any:
    if isinstance(here, list):
        if word == "-":
            return len(here)
        if not word.isdecimal() or int(word) > len(here):
            raise CannotOverride(f"{pointer} leads nowhere: there is no item {word}")
        return int(word)
    if not isinstance(here, dict):
        raise CannotOverride(f"{pointer} leads nowhere: {word} is below a plain value")
    return word


def _at(here: Mapping[str, Any] | Sequence[Any], key: Any, pointer: str) -> Any:
    try:
        return here[key]
    except (KeyError, IndexError) as e:
        raise CannotOverride(f"{pointer} leads nowhere: there is no {key}") from e
