"""Parses request bodies: JSON, YAML that can be expressed as JSON, and the few protobuf messages that kubectl always sends.

Duplicate fields are reported, because only one of the values can be intended.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.kube.requests import protobuf, reader
from fleet.kube.requests.reader import Unreadable
from fleet.kube.requests.status import KubeError


@dataclass(frozen=True, slots=True)
class Body:
    value: Any
    duplicates: tuple[str, ...] = ()
    """The paths of duplicate fields, such as ``spec.list[0].x``. The last value counts."""


class _Twice(dict[str, Any]):
    """An object with duplicate fields."""

    __slots__ = ("names",)

    def __init__(self, pairs: Sequence[tuple[str, Any]], names: list[str]) -> None:
        super().__init__(pairs)
        self.names = names


class _Pairs:
    """Builds objects from pairs, and remembers whether any had duplicate fields."""

    def __init__(self) -> None:
        self.twice = False

    def __call__(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) == len(pairs):
            return result
        self.twice = True
        return _Twice(pairs, _repeated(name for name, _ in pairs))


def read(raw: bytes, content_type: str, *, any_text: bool = False) -> Body:
    """Parses a body. An empty one is an empty object. Raises BadRequest. ``any_text``: see `reader.read_json`."""
    if not raw:
        return Body({})
    if raw.startswith(protobuf.MAGIC):
        return Body(protobuf.document(raw))
    pairs = _Pairs()
    try:
        value = _of_yaml(raw, pairs) if "yaml" in content_type else reader.read_json(raw, pairs, any_text=any_text)
    except Unreadable as e:
        raise KubeError(400, f"the object provided is unrecognized: {str(e)[:300]}") from e
    return Body(value, tuple(_duplicate_paths(value, ""))) if pairs.twice else Body(value)


def _of_yaml(raw: bytes, pairs: _Pairs) -> Any:
    documents = reader.read_yaml(raw, pairs=pairs, keys=_name)
    if len(documents) > 1:
        raise Unreadable(f"one document is expected, and there are {len(documents)}")
    return documents[0] if documents else None


def _name(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _duplicate_paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _duplicate_paths(inner, f"{path}[{index}]")
    elif isinstance(value, dict):
        if isinstance(value, _Twice):
            yield from (f"{path}.{name}".lstrip(".") for name in value.names)
        for name, inner in value.items():
            yield from _duplicate_paths(inner, f"{path}.{name}".lstrip("."))
