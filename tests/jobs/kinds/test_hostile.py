"""A kind reads whatever it is given: each field of each example replaced with what nobody expects."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jobs.kinds import registry, training_runtime
from jobs.kinds.base import marked

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
JUNK = (None, 0, -1, 1.5, True, "", "x", [], ["x"], [None], {}, {"x": None}, {"x": []})


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


RUNTIME = yaml.safe_load((EXAMPLES / "trainingruntime.yaml").read_text())


def resolve(kind, manifest: dict, runtime: dict = RUNTIME) -> None:
    """As a door does with what it has cleaned."""
    if isinstance(manifest.get("metadata"), dict):
        kind.resolve(manifest, lambda *_: runtime)


def test_it_reads_any_runtime_without_raising():
    trainjob = yaml.safe_load((EXAMPLES / "trainjob.yaml").read_text())
    kind = registry.kind_of(trainjob["apiVersion"], trainjob["kind"])
    for path in places(RUNTIME):
        for junk in JUNK:
            runtime = copy.deepcopy(RUNTIME)
            target = runtime
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = junk
            if not training_runtime.faults_of(runtime).found:
                made = copy.deepcopy(trainjob)
                resolve(kind, made, runtime)
                assert kind.read(made).faults or kind.read(made).pods


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem not in ("policy", "trainingruntime"))
)
def test_it_reads_anything_without_raising_and_marks_what_it_took(name):
    manifest = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    kind = registry.kind_of(manifest["apiVersion"], manifest["kind"])
    for path in places(manifest):
        for junk in JUNK:
            made = copy.deepcopy(manifest)
            target = made
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = junk
            resolve(kind, made)
            reading = kind.read(made)
            if not reading.faults and path[0] == "spec":
                sent = marked(kind, made, {"mark": "1"})
                assert all(template["metadata"]["labels"]["mark"] for _, template in kind.templates(sent))
