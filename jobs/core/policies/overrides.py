"""An OverridePolicy, read: what is written otherwise in the copies that go to some clusters.

Karmada's language: images, commands, arguments, labels, annotations, and JSON patches. What a copy is called, whose it is and
what its gang asks are not for overrides to say: where a job fits was decided by those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.errors import FieldFault
from fleet.kube import names
from jobs.core.manifest_fields import Faults
from jobs.core.policies.propagation import Affinity, Selector, read_affinity, read_selectors

KINDS = ("OverridePolicy", "ClusterOverridePolicy")
_OVERRIDERS = (
    "plaintext", "imageOverrider", "commandOverrider", "argsOverrider", "labelsOverrider", "annotationsOverrider",
)  # fmt: skip
_KEYS = ("resourceSelectors", "overrideRules", "targetCluster", "overriders")
_OPERATORS = ("add", "remove", "replace")
_COMPONENTS = ("Registry", "Repository", "Tag")
_OPEN = ("/spec/", "/metadata/labels/", "/metadata/annotations/")
"""Where a patch may write."""


@dataclass(frozen=True, slots=True)
class Patch:
    path: str
    operator: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Image:
    """One part of the image of every container, or of one place."""

    component: str
    operator: str
    value: str = ""
    path: str = ""
    """A JSON pointer to one image; empty: those of all containers of all pod templates."""


@dataclass(frozen=True, slots=True)
class Words:
    """The command or the arguments of one container."""

    field: str
    container: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notes:
    """Labels or annotations of the job."""

    field: str
    operator: str
    values: Mapping[str, str]


Step = Patch | Image | Words | Notes


@dataclass(frozen=True, slots=True)
class Rule:
    clusters: Affinity
    steps: tuple[Step, ...]
    """In the order they are taken: images, words, labels, annotations, patches."""


@dataclass(frozen=True, slots=True)
class OverrideSpec:
    selectors: tuple[Selector, ...] = ()
    """Empty: every job of its namespace, or of all."""
    rules: tuple[Rule, ...] = ()
    faults: tuple[FieldFault, ...] = ()


def parse_override_policy(manifest: Mapping[str, Any], known_kinds: Sequence[tuple[str, str]]) -> OverrideSpec:
    """The policy in ``manifest``; never raises."""
    faults = Faults()
    spec = faults.mapping(manifest.get("spec"), "spec", required=True)
    for key in spec:
        if key not in _KEYS:
            faults.add(f"spec.{key}", f"is not known; known are {', '.join(_KEYS)}")
    chosen = spec.get("resourceSelectors")
    selectors = read_selectors(chosen, known_kinds, faults) if chosen else ()
    rules = [_rule(each, path, faults) for path, each in _rules(spec, faults)]
    return OverrideSpec(selectors, tuple(rules), tuple(faults.found))


def _rules(spec: Mapping[str, Any], faults: Faults) -> list[tuple[str, Any]]:
    """Also the older form, one rule spread over the spec."""
    if "overriders" in spec or "targetCluster" in spec:
        if "overrideRules" in spec:
            faults.add("spec.overriders", "cannot be given together with overrideRules")
        return [("spec", {key: spec[key] for key in ("targetCluster", "overriders") if key in spec})]
    rules = spec.get("overrideRules")
    if not isinstance(rules, list) or not rules:
        faults.add("spec.overrideRules", "must list at least one rule: a policy without one can never act")
        return []
    return [(f"spec.overrideRules[{i}]", each) for i, each in enumerate(rules)]


def _rule(value: object, path: str, faults: Faults) -> Rule:
    body = faults.mapping(value, path, required=True)
    overriders = faults.mapping(body.get("overriders"), f"{path}.overriders", required=True)
    for key in overriders:
        if key not in _OVERRIDERS:
            faults.add(f"{path}.overriders.{key}", f"is not known; known are {', '.join(_OVERRIDERS)}")
    entries = {name: _entries(overriders.get(name), f"{path}.overriders.{name}", faults) for name in _OVERRIDERS}
    if not any(entries.values()) and not faults.found:
        faults.add(f"{path}.overriders", "must hold at least one overrider")
    steps: list[Step] = [_image(each, at, faults) for at, each in entries["imageOverrider"]]
    for field in ("command", "args"):
        steps += [_words(field, each, at, faults) for at, each in entries[f"{field}Overrider"]]
    for field in ("labels", "annotations"):
        steps += [_notes(field, each, at, faults) for at, each in entries[f"{field}Overrider"]]
    steps += [_patch(each, at, faults) for at, each in entries["plaintext"]]
    return Rule(read_affinity(body.get("targetCluster"), f"{path}.targetCluster", faults), tuple(steps))


def _entries(value: object, path: str, faults: Faults) -> list[tuple[str, Mapping[str, Any]]]:
    if value is None:
        return []
    if not isinstance(value, list):
        faults.add(path, "must be a list")
        return []
    return [(at := f"{path}[{i}]", faults.mapping(each, at, required=True)) for i, each in enumerate(value)]


def _operator(body: Mapping[str, Any], path: str, faults: Faults, choices: tuple[str, ...] = _OPERATORS) -> str:
    operator = body.get("operator")
    if operator is None:
        faults.add(f"{path}.operator", f"is required: one of {', '.join(choices)}")
    faults.one_of(operator, f"{path}.operator", choices)
    return str(operator)


def _patch(body: Mapping[str, Any], path: str, faults: Faults) -> Patch:
    target = body.get("path")
    if not isinstance(target, str) or not target.startswith(_OPEN):
        faults.add(f"{path}.path", f"must be a JSON pointer that begins with one of {', '.join(_OPEN)}")
    operator = _operator(body, path, faults)
    if operator != "remove" and "value" not in body:
        faults.add(f"{path}.value", f"is required to {operator}")
    return Patch(str(target), operator, body.get("value"))


def _image(body: Mapping[str, Any], path: str, faults: Faults) -> Image:
    component = body.get("component")
    if component is None:
        faults.add(f"{path}.component", f"is required: one of {', '.join(_COMPONENTS)}")
    faults.one_of(component, f"{path}.component", _COMPONENTS)
    operator = _operator(body, path, faults)
    value = body.get("value")
    if operator != "remove" and (not isinstance(value, str) or not value):
        faults.add(f"{path}.value", f"must be the text to {operator}")
    where = faults.mapping(body.get("predicate"), f"{path}.predicate").get("path") or ""
    if where and (not isinstance(where, str) or not where.startswith("/spec/")):
        faults.add(f"{path}.predicate.path", "must be a JSON pointer that begins with /spec/")
    return Image(str(component), operator, str(value or ""), str(where))


def _words(field: str, body: Mapping[str, Any], path: str, faults: Faults) -> Words:
    container, values = body.get("containerName"), body.get("value")
    if not isinstance(container, str) or not container:
        faults.add(f"{path}.containerName", "is required")
    if not isinstance(values, list) or not all(isinstance(word, str) for word in values):
        faults.add(f"{path}.value", "must be a list of words")
        values = []
    return Words(field, str(container), _operator(body, path, faults, ("add", "remove")), tuple(values))


def _notes(field: str, body: Mapping[str, Any], path: str, faults: Faults) -> Notes:
    values = faults.mapping(body.get("value"), f"{path}.value", required=True)
    if not all(isinstance(each, str) for each in values.values()):
        faults.add(f"{path}.value", "must be an object of text values: put numbers in quotes")
    elif field == "labels":
        for key, each in values.items():
            if detail := names.pair_fault(key, each):
                faults.add(f"{path}.value.{key}", detail)
    return Notes(field, _operator(body, path, faults), values)
