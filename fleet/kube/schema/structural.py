"""Objects brought into the shape their schema describes: defaults filled in, unknown fields dropped or named.

None of it changes what it is given. Whether the values are good is for `fleet.kube.schema.validation`.
"""

import copy
from typing import Any

from fleet.kube.schema.schemas import UNSET, Schema, children

Object = dict[str, Any]


def with_defaults(schema: Schema, value: Any) -> Any:
    """Every field that is missing, and every null that may be none, has its default; what has none stays as it is."""
    if _says_nothing(schema):
        return value
    if isinstance(value, list):
        return [with_defaults(inner, each) if inner else each for _, each, inner in children(schema, value)]
    if not isinstance(value, dict):
        return value
    filled: dict[str | int, Any] = {}
    for name, each, inner in children(schema, value):
        replaced = each is None and inner is not None and not inner.nullable and inner.default is not UNSET
        filled[name] = copy.deepcopy(inner.default) if replaced and inner else each
    for name, inner in schema.fields.items():
        if name not in filled and inner.default is not UNSET:
            filled[name] = copy.deepcopy(inner.default)
    return {name: with_defaults(inner, each) if inner else each for name, each, inner in children(schema, filled)}


def without_defaults(schema: Schema, value: Any, stored: Any) -> Any:
    """`value` without the defaults that are not stored: they were only shown, never written."""
    if _says_nothing(schema):
        return value
    if isinstance(value, list):
        known = [*stored, *value[len(stored) :]] if isinstance(stored, list) else value
        return [
            without_defaults(i, each, old) if i else each
            for (_, each, i), old in zip(children(schema, value), known, strict=False)
        ]
    if not isinstance(value, dict):
        return value
    kept = stored if isinstance(stored, dict) else value
    return {
        name: without_defaults(inner, each, kept.get(name)) if inner else each
        for name, each, inner in children(schema, value)
        if name in kept or inner is None or inner.default is UNSET or each != inner.default
    }


def pruned(schema: Schema, value: Any) -> Any:
    """Without the fields that are not described, at any depth."""
    if _says_nothing(schema):
        return value
    if isinstance(value, list):
        return [pruned(inner, each) if inner else each for _, each, inner in children(schema, value)]
    if not isinstance(value, dict):
        return value
    return {name: pruned(inner, each) for name, each, inner in children(schema, value) if inner is not None}


def without_empty(schema: Schema, value: Any) -> Any:
    """As built-in types are written: a map or list that is empty, or null, is left out where it may be missing."""
    if _says_nothing(schema):
        return value
    if isinstance(value, list):
        return [without_empty(inner, each) if inner else each for _, each, inner in children(schema, value)]
    if not isinstance(value, dict):
        return value
    kept: dict[Any, Any] = {}
    for name, each, inner in children(schema, value):
        optional = name in schema.fields and name not in schema.required
        nothing = each is None or each == [] or (each == {} and inner is not None and inner.extra is not None)
        if not (optional and nothing):
            kept[name] = without_empty(inner, each) if inner else each
    return kept


def unknown_fields(schema: Schema, value: Any, path: str = "") -> list[str]:
    """Where fields stand that are not described, as ``spec.template.x`` and ``spec.list[0].x``."""
    found: list[str] = []
    if _says_nothing(schema):
        return found
    for name, each, inner in children(schema, value):
        where = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}" if path else name
        if inner is None:
            found.append(where)
        else:
            found += unknown_fields(inner, each, where)
    return found


def _says_nothing(schema: Schema) -> bool:
    """Whether anything may stand below, so that no check is needed."""
    return schema.open and not schema.fields and schema.items is None and schema.extra is None
