"""Validates the values of an object by its schema, with the messages of a real API server: one cause for each invalid field.

The object must have its defaults. Patterns come from the schema's author and may be slow, so only short strings are matched.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from fleet.kube.schema.schemas import MAP, SET, Schema, children, compact, entry_key

Cause = dict[str, str]
REQUIRED, INVALID, UNSUPPORTED, DUPLICATE = (
    f"FieldValue{word}" for word in ("Required", "Invalid", "NotSupported", "Duplicate")
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_LONGEST = 4096
"""The longest string that is matched against a pattern; longer ones are invalid."""


def cause(reason: str, field: str, message: str) -> Cause:
    return {"reason": reason, "message": message, "field": field}


def faults(schema: Schema, value: Any, path: str = "") -> list[Cause]:
    """All faults, in the order of the fields. Empty for a valid value."""
    return list(_faults(schema, value, path))


def _faults(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    if value is None and schema.nullable:
        return
    if wrong := _type_fault(schema, value):
        where = f"{path} in body must be of type {wrong}"
        yield cause(INVALID, path, f'Invalid value: "{_type_of(value)}": {where}: "{_type_of(value)}"')
        return
    if schema.choices and value not in schema.choices:
        listed = ", ".join(compact(each) for each in schema.choices)
        yield cause(UNSUPPORTED, path, f"Unsupported value: {compact(value)}: supported values: {listed}")
    for shown, message in _limit_faults(schema, value):
        yield cause(INVALID, path, f"Invalid value: {compact(shown)}: {path} in body should {message}")
    if isinstance(value, dict):
        yield from _missing(schema, value, path)
    if isinstance(value, list):
        yield from _duplicates(schema, value, path)
    for name, each, inner in children(schema, value):
        if inner is not None:
            yield from _faults(inner, each, _below(path, name))


def _below(path: str, name: str | int) -> str:
    return f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}" if path else name


def _type_fault(schema: Schema, value: Any) -> str:
    """The expected type if the value has another one, else empty."""
    if schema.int_or_text:
        return "" if isinstance(value, (int, str)) and not isinstance(value, bool) else "integer,string"
    wanted = _TYPES.get(schema.type)
    if wanted is None:
        return ""
    fits = isinstance(value, wanted) and (schema.type == "boolean" or not isinstance(value, bool))
    if schema.type == "integer" and isinstance(value, float):
        fits = value.is_integer()
    return "" if fits else schema.type


def _type_of(value: Any) -> str:
    for name in ("boolean", "object", "array", "string", "integer", "number"):
        if isinstance(value, _TYPES[name]):
            return name
    return "null"


def _missing(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in schema.required:
        if name not in value:
            yield cause(REQUIRED, _below(path, name), "Required value")
    if schema.embedded:
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                yield cause(REQUIRED, _below(path, name), "Required value: must not be empty")


def _duplicates(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, entry in enumerate(value if schema.list_type in (SET, MAP) else []):
        key = entry_key(schema, entry)
        if key and key in seen:
            yield cause(DUPLICATE, f"{path}[{index}]", f"Duplicate value: {key[2:]}")
        seen.add(key)


def _limit_faults(schema: Schema, value: Any) -> Iterator[tuple[Any, str]]:
    """For each violated limit, the value to show and the text of the limit."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield from ((value, message) for message in _number_faults(schema.limits, value))
    elif isinstance(value, str):
        yield from ((value, message) for message in _text_faults(schema.limits, value))
    elif isinstance(value, list):
        yield from _size_faults(schema.limits, len(value), "Items", "items")
    elif isinstance(value, dict):
        yield from _size_faults(schema.limits, len(value), "Properties", "properties")


def _number_faults(limits: Mapping[str, Any], value: float) -> Iterator[str]:
    low, high, step = (limits.get(name) for name in ("minimum", "maximum", "multipleOf"))
    if low is not None and (value < low or (value == low and limits.get("exclusiveMinimum"))):
        yield f"be greater than {'' if limits.get('exclusiveMinimum') else 'or equal to '}{low}"
    if high is not None and (value > high or (value == high and limits.get("exclusiveMaximum"))):
        yield f"be less than {'' if limits.get('exclusiveMaximum') else 'or equal to '}{high}"
    if step and value % step:
        yield f"be a multiple of {step}"


def _text_faults(limits: Mapping[str, Any], value: str) -> Iterator[str]:
    if len(value) > limits.get("maxLength", len(value)):
        yield f"be at most {limits['maxLength']} chars long"
    if len(value) < limits.get("minLength", 0):
        yield f"be at least {limits['minLength']} chars long"
    pattern = limits.get("pattern")
    if pattern and (len(value) > _LONGEST or not _compiled(pattern).search(value)):
        yield f"match '{pattern}'"


def _size_faults(limits: Mapping[str, Any], size: int, suffix: str, word: str) -> Iterator[tuple[int, str]]:
    most, least = limits.get(f"max{suffix}"), limits.get(f"min{suffix}")
    if most is not None and size > most:
        yield size, f"have at most {most} {word}"
    if least is not None and size < least:
        yield size, f"have at least {least} {word}"


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
