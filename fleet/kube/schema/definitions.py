"""Checks the schema of a CustomResourceDefinition before it is served."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.kube.schema.schemas import ATOMIC, MAP, SET
from fleet.kube.schema.validation import INVALID, REQUIRED, UNSUPPORTED, Cause, cause

_TYPES = ("object", "array", "string", "boolean", "integer", "number")
_WORDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "text", int: "a whole number"}
_SHAPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("properties",), dict),
    **dict.fromkeys(("required", "enum", "x-kubernetes-list-map-keys"), list),
    **dict.fromkeys(
        ("type", "pattern", "format", "description", "x-kubernetes-list-type", "x-kubernetes-map-type"), str
    ),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (int, float)),
}
_DEEPEST = 64


def schema_faults(document: Any, path: str, depth: int = 0) -> Iterator[Cause]:
    """Everything that is invalid in an ``openAPIV3Schema``."""
    if not isinstance(document, dict):
        yield cause(INVALID, path, "Invalid value: must be an object")
        return
    if depth > _DEEPEST:
        yield cause(INVALID, path, "Invalid value: the schema is nested too deeply")
        return
    wrong = list(_misshapen(document, path))
    yield from wrong or _unfit(document, path)
    if not wrong:
        for name, inner in (document.get("properties") or {}).items():
            yield from schema_faults(inner, f"{path}.properties[{name}]", depth + 1)
        if "items" in document:
            yield from schema_faults(document["items"], f"{path}.items", depth + 1)
        if isinstance(document.get("additionalProperties"), dict):
            yield from schema_faults(document["additionalProperties"], f"{path}.additionalProperties", depth + 1)


def _misshapen(document: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name, value in document.items():
        wanted = _SHAPES.get(name)
        if wanted and value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            word = "a number" if isinstance(wanted, tuple) else _WORDS[wanted]
            yield cause(INVALID, f"{path}.{name}", f"Invalid value: must be {word}")


def _unfit(document: Mapping[str, Any], path: str) -> Iterator[Cause]:
    open_ended = document.get("x-kubernetes-int-or-string") or document.get("x-kubernetes-preserve-unknown-fields")
    kind, listed = document.get("type"), document.get("x-kubernetes-list-type", ATOMIC)
    if not kind and not open_ended:
        yield cause(REQUIRED, f"{path}.type", "Required value: must not be empty for specified object fields")
    elif kind and kind not in _TYPES:
        supported = ", ".join(f'"{each}"' for each in sorted(_TYPES))
        yield cause(UNSUPPORTED, f"{path}.type", f'Unsupported value: "{kind}": supported values: {supported}')
    if kind == "array" and "items" not in document:
        yield cause(REQUIRED, f"{path}.items", "Required value: must be specified")
    if listed not in (ATOMIC, SET, MAP):
        message = f'Unsupported value: "{listed}": supported values: "atomic", "map", "set"'
        yield cause(UNSUPPORTED, f"{path}.x-kubernetes-list-type", message)
    if listed == MAP and not document.get("x-kubernetes-list-map-keys"):
        message = "Required value: must not be empty if x-kubernetes-list-type is map"
        yield cause(REQUIRED, f"{path}.x-kubernetes-list-map-keys", message)
    try:
        re.compile(document.get("pattern") or "")
    except re.error as e:
        message = f'Invalid value: "{document["pattern"]}": must be a valid regular expression, but isn\'t: {e}'
        yield cause(INVALID, f"{path}.pattern", message)
