"""A kind reads whatever it is given: each field of each example replaced with what nobody expects."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jobs.kinds import registry
from jobs.kinds.base import marked

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
JUNK = (None, 0, -1, 1.5, True, "", "x", [], ["x"], [None], {}, {"x": None}, {"x": []})


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "policy"))
def test_it_reads_anything_without_raising_and_marks_what_it_took(name):
    manifest = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    kind = registry.of(manifest["apiVersion"], manifest["kind"])
    for path in places(manifest):
        for junk in JUNK:
            made = copy.deepcopy(manifest)
            target = made
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = junk
            reading = kind.read(made)
            if not reading.faults and path[0] == "spec":
                sent = marked(kind, made, {"mark": "1"})
                assert all(template["metadata"]["labels"]["mark"] for _, template in kind.templates(sent))
