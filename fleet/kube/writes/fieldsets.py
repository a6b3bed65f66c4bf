"""Sets of field paths, as in managedFields, and operations on objects with them: compare, merge, remove fields.

A path is a tuple of FieldsV1 elements: ``f:spec``, ``k:{"name":"main"}`` for an entry of a keyed list, ``v:"x"`` for an entry
of a set. The schema says which lists and maps are atomic; without a schema, maps are divided into their fields and lists are
atomic. The rules are those of structured-merge-diff, so that an object applied here gets the same owners as on a real server.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fleet.kube.schema.schemas import ANY, MAP, SET, Schema, compact, entry_key

Path = tuple[str, ...]
FieldSet = frozenset[Path]
NONE: Final[FieldSet] = frozenset()
ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Comparison:
    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        return self.added | self.modified


def parts(schema: Schema, value: Any) -> dict[str, tuple[Any, Schema]] | None:
    """The parts of a value by path element, each with its schema. None for an atomic value."""
    if isinstance(value, dict) and not schema.whole:
        return {f"f:{name}": (each, schema.field(name) or ANY) for name, each in value.items()}
    if isinstance(value, list) and schema.list_type in (SET, MAP):
        keyed: dict[str, tuple[Any, Schema]] = {}
        for each in value:
            keyed.setdefault(entry_key(schema, each), (each, schema.items or ANY))
        return None if "" in keyed else keyed
    return None


def of_value(schema: Schema, value: Any) -> FieldSet:
    """All fields that the value sets, which are those that an apply of it owns."""
    return frozenset(_fields(schema, value, ()))


def _fields(schema: Schema, value: Any, path: Path) -> Iterator[Path]:
    inside = parts(schema, value)
    if inside is None:
        yield path
        return
    for element, (each, inner) in inside.items():
        below = (*path, element)
        yield from _fields(inner, each, below)
        if element[0] != "f" or each is None or each == {} or element[2:] not in schema.fields:
            yield below


def doubled(schema: Schema, value: Any, path: Path = ()) -> Path | None:
    """The path of a duplicate entry in a keyed list or set. None if there is none."""
    inside = parts(schema, value)
    if isinstance(value, list) and inside is not None and len(inside) < len(value):
        keys = Counter(entry_key(schema, each) for each in value)
        return (*path, max(keys, key=lambda key: keys[key]))
    duplicates = (doubled(inner, each, (*path, element)) for element, (each, inner) in (inside or {}).items())
    return next(filter(None, duplicates), None)


def compared(schema: Schema, old: Any, new: Any) -> Comparison:
    """The fields that an update adds, modifies and removes."""
    paths_by_kind: dict[str, set[Path]] = {"added": set(), "modified": set(), "removed": set()}
    for kind, path in _differences(schema, old, new, ()):
        paths_by_kind[kind].add(path)
    return Comparison(**{kind: frozenset(paths) for kind, paths in paths_by_kind.items()})


def _differences(schema: Schema, old: Any, new: Any, path: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(old, (dict, list)) and old == new:
        return
    before, after = parts(schema, old), parts(schema, new)
    if not before and not after:
        before = after = None
    if before is not None and after is not None and isinstance(old, dict) != isinstance(new, dict):
        before = after = None
    if before is None and after is None:
        if old is ABSENT or new is ABSENT:
            yield ("added" if old is ABSENT else "removed"), path
        elif not _same(old, new):
            yield "modified", path
        return
    for element in {**(before or {}), **(after or {})}:
        was, inner = (before or {}).get(element, (ABSENT, ANY))
        becomes, inner = (after or {}).get(element, (ABSENT, inner))
        yield from _differences(inner, was, becomes, (*path, element))
    if path and (old is ABSENT or new is ABSENT):
        yield ("added" if old is ABSENT else "removed"), path
    elif old is not ABSENT and new is not ABSENT and (_is_leaf(old, before) or _is_leaf(new, after)):
        yield "modified", path


def _is_leaf(value: Any, inside: object) -> bool:
    return inside is None and value is not None


def _same(old: Any, new: Any) -> bool:
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def merged(schema: Schema, live: Any, applied: Any) -> Any:
    """``live`` with ``applied`` merged into it."""
    if applied is ABSENT:
        return live
    before, after = parts(schema, live), parts(schema, applied)
    if before and applied is None:
        return live
    if not before or after is None or isinstance(live, dict) != isinstance(applied, dict):
        return applied
    order = list({**before, **after}) if isinstance(applied, dict) else _order(list(before), list(after))
    result = {}
    for element in order:
        was, inner = before.get(element, (ABSENT, ANY))
        becomes, inner = after.get(element, (ABSENT, inner))
        result[element] = merged(inner, was, becomes)
    return {name[2:]: each for name, each in result.items()} if isinstance(applied, dict) else list(result.values())


def _order(live: list[str], applied: list[str]) -> list[str]:
    """The order of merged entries: applied entries keep their order; a live entry stays before the one that it preceded."""
    applied_set, ordered, shared = set(applied), [], [each for each in applied if each in set(live)]
    position = 0
    for each in applied:
        while position < len(live) and live[position] not in shared[:1]:
            ordered += [live[position]] if live[position] not in applied_set else []
            position += 1
        if shared[:1] == [each]:
            shared.pop(0)
            position += 1
        ordered.append(each)
    return ordered + [each for each in live[position:] if each not in applied_set]


def without(schema: Schema, value: Any, removed: FieldSet) -> Any:
    """The value without these fields. A map or list that loses its last part is removed as well."""
    result = _without(schema, value, _tree(removed))
    return {} if result is ABSENT else result


def _tree(paths: Iterable[Path]) -> dict[str, Any]:
    """The paths as nested maps; ``.`` marks where one ends."""
    root: dict[str, Any] = {}
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = True
    return root


def _without(schema: Schema, value: Any, removed: Mapping[str, Any]) -> Any:
    inside = parts(schema, value)
    if not inside or not removed:
        return value
    remaining = {}
    for element, (each, inner) in inside.items():
        below = removed.get(element, {})
        if "." not in below and (reduced := _without(inner, each, below)) is not ABSENT:
            remaining[element] = reduced
    if not remaining:
        return ABSENT
    return {name[2:]: each for name, each in remaining.items()} if isinstance(value, dict) else list(remaining.values())


def with_named(schema: Schema, paths: FieldSet) -> FieldSet:
    """``paths`` and the fields above them that the schema describes, which would otherwise have no owner."""
    result = set(paths)
    for path in paths:
        inner: Schema = schema
        for depth, element in enumerate(path[:-1], 1):
            if element[0] == "f":
                if element[2:] in inner.fields:
                    result.add(path[:depth])
                inner = inner.field(element[2:]) or ANY
            else:
                inner = inner.items or ANY
    return frozenset(result)


def to_fields(paths: FieldSet) -> dict[str, Any]:
    """The paths in the form of ``fieldsV1``."""
    return _written(_tree(paths))


def _written(node: Mapping[str, Any]) -> dict[str, Any]:
    inside = {element: _written(node[element]) for element in sorted(set(node) - {"."}, key=_rank)}
    return {".": {}, **inside} if "." in node and inside else inside


def rank(path: Path) -> list[tuple[bool, tuple[int, str]]]:
    """A sort key for paths: a path comes before the longer ones that begin with it."""
    return [(place < len(path), _rank(element)) for place, element in enumerate(path, 1)]


def _rank(element: str) -> tuple[int, str]:
    return "fkvi".find(element[0]), element


def from_fields(fields: Any) -> FieldSet:
    """Parses ``fieldsV1``. Malformed elements are skipped."""
    return frozenset(_parse_paths(fields, ())) if isinstance(fields, dict) else NONE


def _parse_paths(fields: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if path and (not fields or "." in fields):
        yield path
    for element, below in fields.items():
        if isinstance(below, dict) and (known := _canonical(element)):
            yield from _parse_paths(below, (*path, known))


@lru_cache(maxsize=8192)
def _canonical(element: str) -> str:
    """The element in canonical form. Empty if it is not a path element."""
    kind = element[:2]
    if kind == "f:":
        return element
    try:
        value = json.loads(element[2:]) if kind in ("k:", "v:", "i:") else None
    except (ValueError, RecursionError):
        return ""
    fits = isinstance(value, dict) if kind == "k:" else value is not None
    return f"{kind}{compact(value)}" if fits else ""


def spelled(path: Path) -> str:
    """The path in readable form: ``.spec.containers[name="main"].image``."""
    return "".join(_spelled(element) for element in path)


def _spelled(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={compact(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
