"""What a client sends, read: JSON, YAML as far as it is JSON, and the few protobuf messages kubectl insists on.

A field that is written twice is told, because whoever wrote it meant only one of them.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from fleet.kube import protobuf
from fleet.kube.status import KubeError


@dataclass(frozen=True, slots=True)
class Body:
    value: Any
    duplicates: tuple[str, ...] = ()
    """Where a field stands twice, as ``spec.list[0].x``; the last of them counts."""


class _Twice(dict[str, Any]):
    """An object some of whose fields were written more than once."""

    __slots__ = ("names",)

    def __init__(self, pairs: list[tuple[str, Any]], names: list[str]) -> None:
        super().__init__(pairs)
        self.names = names


class _Pairs:
    """Makes objects of their pairs, and remembers whether any was unlike the others."""

    def __init__(self) -> None:
        self.twice = False

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.twice = True
        return _Twice(pairs, _repeated(name for name, _ in pairs))


class _Manifest(yaml.SafeLoader):
    """What JSON can say: times stay text, and an alias, by which a few bytes become many, is refused."""

    pairs: _Pairs

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken here: write the value out")
        return super().compose_node(parent, index)

    def construct_pairs_as_object(self, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
        self.flatten_mapping(node)
        found = self.construct_pairs(node, deep=True)
        yield self.pairs([(_name(key), value) for key, value in found])


_Manifest.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Manifest.add_constructor("tag:yaml.org,2002:map", _Manifest.construct_pairs_as_object)


def read(raw: bytes, content_type: str) -> Body:
    """Nothing sent is an empty object; raises BadRequest for what cannot be read."""
    if not raw:
        return Body({})
    if raw.startswith(protobuf.MAGIC):
        return Body(protobuf.document(raw))
    pairs = _Pairs()
    try:
        value = _of_yaml(raw, pairs) if "yaml" in content_type else _of_json(raw, pairs)
        return Body(value, tuple(_found(value, ""))) if pairs.twice else Body(value)
    except (TypeError, ValueError, RecursionError, yaml.YAMLError) as e:
        raise KubeError(400, f"the object provided is unrecognized: {str(e)[:300]}") from e


def _of_json(raw: bytes, pairs: _Pairs) -> Any:
    return json.loads(raw, parse_constant=_no_number, object_pairs_hook=pairs)


def _of_yaml(raw: bytes, pairs: _Pairs) -> Any:
    loader = _Manifest(raw)
    loader.pairs = pairs
    try:
        value = loader.get_single_data()
    finally:
        loader.dispose()
    json.dumps(value, allow_nan=False)
    return value


def _name(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _found(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _found(each, f"{path}[{index}]")
    elif isinstance(value, dict):
        if isinstance(value, _Twice):
            yield from (f"{path}.{name}".lstrip(".") for name in value.names)
        for name, each in value.items():
            yield from _found(each, f"{path}.{name}".lstrip("."))
