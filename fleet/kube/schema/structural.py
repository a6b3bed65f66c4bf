"""Applies a schema to objects: adds or removes defaults, drops unknown fields or lists them.

No function changes its arguments. Values are validated by `fleet.kube.schema.validation`.
"""

import copy
from typing import Any

from fleet.kube.schema.schemas import UNSET, Schema, children

Object = dict[str, Any]


def with_defaults(schema: Schema, value: Any) -> Any:
    """The value with defaults for missing fields, and for nulls where null is not allowed."""
    if _allows_anything(schema):
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
    """``value`` without defaults that are not in ``stored``: the client received them, but did not set them."""
    if _allows_anything(schema):
        return value
    if isinstance(value, list):
        known = [*stored, *value[len(stored) :]] if isinstance(stored, list) else value
        return [
            without_defaults(i, each, old) if i else each
            for (_, each, i), old in zip(children(schema, value), known, strict=False)
        ]
    if not isinstance(value, dict):
        return value
    known_fields = stored if isinstance(stored, dict) else value
    return {
        name: without_defaults(inner, each, known_fields.get(name)) if inner else each
        for name, each, inner in children(schema, value)
        if name in known_fields or inner is None or inner.default is UNSET or each != inner.default
    }


def pruned(schema: Schema, value: Any) -> Any:
    """The value without unknown fields, at any depth."""
    if _allows_anything(schema):
        return value
    if isinstance(value, list):
        return [pruned(inner, each) if inner else each for _, each, inner in children(schema, value)]
    if not isinstance(value, dict):
        return value
    return {name: pruned(inner, each) for name, each, inner in children(schema, value) if inner is not None}


def without_empty(schema: Schema, value: Any) -> Any:
    """The value without optional fields that are null, empty lists or empty maps, as built-in types are serialised."""
    if _allows_anything(schema):
        return value
    if isinstance(value, list):
        return [without_empty(inner, each) if inner else each for _, each, inner in children(schema, value)]
    if not isinstance(value, dict):
        return value
    result: dict[Any, Any] = {}
    for name, each, inner in children(schema, value):
        optional = name in schema.fields and name not in schema.required
        nothing = each is None or each == [] or (each == {} and inner is not None and inner.extra is not None)
        if not (optional and nothing):
            result[name] = without_empty(inner, each) if inner else each
    return result


def unknown_fields(schema: Schema, value: Any, path: str = "") -> list[str]:
    """The paths of unknown fields, such as ``spec.template.x`` and ``spec.list[0].x``."""
    paths: list[str] = []
    if _allows_anything(schema):
        return paths
    for name, each, inner in children(schema, value):
        place = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}" if path else name
        if inner is None:
            paths.append(place)
        else:
            paths += unknown_fields(inner, each, place)
    return paths


def _allows_anything(schema: Schema) -> bool:
    """Whether the schema allows anything, so that no check is needed."""
    return schema.open and not schema.fields and schema.items is None and schema.extra is None
