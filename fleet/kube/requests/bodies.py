"""What a client sends, read: JSON, YAML as far as it is JSON, and the few protobuf messages kubectl insists on.

A field that is written twice is reported, because only one of the two values can be meant.
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
    """Where a field stands twice, as ``spec.list[0].x``; the last of them counts."""


class _Twice(dict[str, Any]):
    """An object some of whose fields were written more than once."""

    __slots__ = ("names",)

    def __init__(self, pairs: Sequence[tuple[str, Any]], names: list[str]) -> None:
        super().__init__(pairs)
        self.names = names


class _Pairs:
    """Makes objects of their pairs, and remembers whether any was unlike the others."""

    def __init__(self) -> None:
        self.twice = False

    def __call__(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.twice = True
        return _Twice(pairs, _repeated(name for name, _ in pairs))


def read(raw: bytes, content_type: str, *, any_text: bool = False) -> Body:
    """Nothing sent is an empty object; raises BadRequest for what cannot be read. ``any_text``: see `reader.read_json`."""
    if not raw:
        return Body({})
    if raw.startswith(protobuf.MAGIC):
        return Body(protobuf.document(raw))
    pairs = _Pairs()
    try:
        value = _of_yaml(raw, pairs) if "yaml" in content_type else reader.read_json(raw, pairs, any_text=any_text)
    except Unreadable as e:
        raise KubeError(400, f"the object provided is unrecognized: {str(e)[:300]}") from e
    return Body(value, tuple(_found(value, ""))) if pairs.twice else Body(value)


def _of_yaml(raw: bytes, pairs: _Pairs) -> Any:
    documents = reader.read_yaml(raw, pairs=pairs, keys=_name)
    if len(documents) > 1:
        raise Unreadable(f"one document is expected, and there are {len(documents)}")
    return documents[0] if documents else None


def _name(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


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
