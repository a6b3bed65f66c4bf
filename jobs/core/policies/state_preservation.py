"""Which state of a job its policy preserves for later attempts: Karmada's ``statePreservation``, with two fields more. Pure.

A rule names where the value is read (a path into the status of the copy, or an annotation of a pod) and under which name
later attempts get it: as an annotation of the object and of its pods, as a label of the object if it is a valid one, and in
an environment variable if the rule names one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from fleet.core.members.pods import pod_state
from fleet.kube import names
from fleet.kube.requests import json_paths
from fleet.kube.requests.json_paths import JsonPath, PathError
from jobs.core.manifest_fields import Faults, Manifest

MAX_RULES = pod_state.MAX_KEYS
MAX_BYTES = pod_state.MAX_BYTES
_RULE_KEYS = ("aliasLabelName", "jsonPath", "podAnnotation", "env")
_RESERVED = ("convoy.dev", "kubernetes.io", "k8s.io")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,252}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StateRule:
    alias: str
    json_path: str = ""
    """Into the status of the copy; empty: the value is that of ``pod_annotation``."""
    pod_annotation: str = ""
    env: str = ""

    def as_json(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}


def of_stored(rules: Iterable[Mapping[str, str]]) -> tuple[StateRule, ...]:
    return tuple(StateRule(**rule) for rule in rules)


def read(failover: Mapping[str, Any], faults: Faults) -> tuple[StateRule, ...]:
    """The rules under ``application`` and ``cluster``. A name that both have must have the same source in both."""
    rules: dict[str, StateRule] = {}
    for part in ("application", "cluster"):
        body = failover.get(part)
        preservation = body.get("statePreservation") if isinstance(body, Mapping) else None
        path = f"spec.failover.{part}.statePreservation"
        listed = faults.mapping(preservation, path).get("rules")
        if preservation is not None and (not isinstance(listed, list) or not listed):
            faults.add(f"{path}.rules", "must list at least one rule")
            continue
        for i, entry in enumerate(listed or ()):
            rule = _rule(faults.mapping(entry, f"{path}.rules[{i}]", required=True), f"{path}.rules[{i}]", faults)
            if rule is not None and rules.setdefault(rule.alias, rule) != rule:
                faults.add(f"{path}.rules[{i}].aliasLabelName", f"{rule.alias} is also the name of another rule")
    _check_together(tuple(rules.values()), faults)
    return tuple(rules.values())


def warnings(failover: Mapping[str, Any], *, divided: object) -> list[str]:
    """What the author of an accepted policy should know of its rules."""
    if divided is None or not read(failover, Faults()):
        return []
    return ["spec.failover: statePreservation has no effect on jobs that are divided over clusters"]


def _rule(body: Manifest, path: str, faults: Faults) -> StateRule | None:
    """None if the rule has a fault: an older version may have stored it, without any effect."""
    before = len(faults.found)
    for key in body:
        if key not in _RULE_KEYS:
            faults.add(f"{path}.{key}", f"is not known; known are {', '.join(_RULE_KEYS)}")
    values = {key: _text(body.get(key), f"{path}.{key}", faults) for key in _RULE_KEYS}
    rule = StateRule(*values.values())
    _check_key(rule.alias, f"{path}.aliasLabelName", faults)
    if bool(rule.json_path) == bool(rule.pod_annotation):
        faults.add(f"{path}.jsonPath", "is required, or podAnnotation instead; a rule has one of them")
    if rule.json_path and (detail := _path_fault(rule.json_path)):
        faults.add(f"{path}.jsonPath", detail)
    if rule.pod_annotation and (detail := names.pair_fault(rule.pod_annotation, "")):
        faults.add(f"{path}.podAnnotation", detail)
    if rule.env and (not _VARIABLE.fullmatch(rule.env) or rule.env.startswith("CONVOY_")):
        faults.add(f"{path}.env", "must be letters, digits and '_', not begin with a digit, and not with CONVOY_")
    return rule if len(faults.found) == before else None


def _text(value: object, path: str, faults: Faults) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    faults.add(path, "must be text")
    return ""


def _check_key(alias: str, path: str, faults: Faults) -> None:
    if detail := names.pair_fault(alias, ""):
        faults.add(path, detail)
    domain = alias.rpartition("/")[0]
    if any(domain == reserved or domain.endswith(f".{reserved}") for reserved in _RESERVED):
        faults.add(path, f"must not be in the domains {', '.join(_RESERVED)}, which have meanings of their own")


def _check_together(rules: Sequence[StateRule], faults: Faults) -> None:
    if len(rules) > MAX_RULES:
        faults.add("spec.failover", f"has {len(rules)} rules of statePreservation, at most {MAX_RULES} are taken")
    variables = [rule.env for rule in rules if rule.env]
    if len(set(variables)) < len(variables):
        faults.add("spec.failover", "has two rules of statePreservation with the same env")


def _path_fault(text: str) -> str:
    try:
        _parsed(text)
    except PathError as e:
        return str(e)
    return ""


@lru_cache(maxsize=256)
def _parsed(text: str) -> JsonPath:
    return json_paths.parse(text)


def from_status(rules: Iterable[StateRule], status: Mapping[str, Any]) -> dict[str, str]:
    """The values that the rules find in the status, by alias. A rule that finds nothing has none."""
    values = {}
    for rule in rules:
        matches = _parsed(rule.json_path).find(status) if rule.json_path else []
        matches = [value for value in matches if value is not None]
        if matches:
            values[rule.alias] = json_paths.shown(matches)
    return values


def from_annotations(rules: Iterable[StateRule], annotations: Mapping[str, str | None]) -> dict[str, str | None]:
    """The values of the annotations that the rules name, by alias. None: the value was too long to be kept."""
    wanted = {rule.alias: rule.pod_annotation for rule in rules if rule.pod_annotation in annotations}
    return {alias: annotations[key] for alias, key in wanted.items()}
