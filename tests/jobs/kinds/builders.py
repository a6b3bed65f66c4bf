"""Documented manifests, and changed copies of them."""

import copy
from pathlib import Path

import yaml

from jobs.kinds import registry

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def example(name: str) -> tuple[registry.Kind, dict]:
    manifest = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    manifest["metadata"].setdefault("namespace", "default")
    return registry.kind_of(manifest["apiVersion"], manifest["kind"]), manifest


def changed(manifest: dict, path: str, value: object) -> dict:
    made = copy.deepcopy(manifest)
    target = made
    *parents, last = path.split("/")
    for word in parents:
        target = target[int(word)] if word.isdigit() else target.setdefault(word, {})
    target[last] = value
    return made
