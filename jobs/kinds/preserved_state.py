"""Writes the preserved state of earlier attempts into a copy, and tells its pods which of their annotations are kept. Pure."""

from collections.abc import Mapping, Sequence

from fleet.core.members.pods import pod_state
from fleet.kube import names
from jobs.core.policies.state_preservation import StateRule
from jobs.kinds.base import Kind, Manifest, set_metadata


def write(kind: Kind, body: Manifest, rules: Sequence[StateRule], values: Mapping[str, str]) -> None:
    """Changes ``body`` in place. A rule without a value leaves what the manifest says itself."""
    labels = {alias: value for alias, value in values.items() if not names.pair_fault(alias, value)}
    if values:
        set_metadata(body, "annotations", dict(values))
    if labels:
        set_metadata(body, "labels", labels)
    kept = ",".join(dict.fromkeys(rule.pod_annotation for rule in rules if rule.pod_annotation))
    variables = {rule.env: rule.alias for rule in rules if rule.env and rule.alias in values}
    for _, template in kind.templates(body):
        if values or kept:
            set_metadata(template, "annotations", {**values, **({pod_state.PRESERVE: kept} if kept else {})})
        _set_variables(template, variables)


def _set_variables(template: Manifest, variables: Mapping[str, str]) -> None:
    """Of all containers, in place of what the manifest sets: a first value that later attempts replace."""
    spec = template.get("spec") or {}
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        env = container["env"] = container.get("env") or []
        env[:] = [each for each in env if each.get("name") not in variables]
        for name, alias in variables.items():
            path = f"metadata.annotations['{alias}']"
            env.append({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
