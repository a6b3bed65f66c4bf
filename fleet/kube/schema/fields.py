"""Describes what may be written at one path of an object, from the OpenAPI schema of its kind. For completion in editors."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Document = Mapping[str, Any]
ENTRY: Final = "[]"
"""The path step from a list to its entries. Any other text works as well."""
TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "int-or-string", "any")
_LONGEST = 300
_WORD = r"[A-Za-z][\w.-]*(?: \(default\))?"
_NAMED = re.compile(rf"(?:^|: |\bOne of )({_WORD}(?:, {_WORD})*(?:,| or) {_WORD})\.$")
"""Matches descriptions that list the values of a string: "One of A, B." or "When it is pulled: A, B (default) or C."."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    """One of `TYPES`."""
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class Place:
    """The description of one path. A path that the schema does not describe has neither fields nor choices."""

    type: str = "any"
    description: str = ""
    fields: tuple[Field, ...] = ()
    choices: tuple[str, ...] = ()


def at(document: Document, components: Mapping[str, Document], path: Sequence[str]) -> Place:
    """The description of the path. ``components`` are the schemas that the document refers to, by name."""
    current = _resolved(document, components)
    for step in path:
        inner = _below(current, step)
        if inner is None:
            return Place()
        current = _resolved(inner, components)
    return Place(_type(current), _describe_field(current), tuple(_fields(current, components)), _choices(current))


def _resolved(document: Document, components: Mapping[str, Document]) -> Document:
    """The document with its reference followed. A description beside the reference overrides the referred one."""
    described = {"description": document["description"]} if document.get("description") else {}
    while reference := (document.get("allOf") or [document])[0].get("$ref"):
        document = components[reference.rpartition("/")[2]]
    return {**document, **described}


def _below(document: Document, step: str) -> Document | None:
    if document.get("type") == "array":
        return document.get("items")
    inner = (document.get("properties") or {}).get(step, document.get("additionalProperties"))
    return inner if isinstance(inner, dict) else None


def _fields(document: Document, components: Mapping[str, Document]) -> Iterator[Field]:
    required = document.get("required") or ()
    for name, inner in (document.get("properties") or {}).items():
        described = _resolved(inner, components)
        yield Field(name, _type(described), _describe_field(described), name in required)


def _type(document: Document) -> str:
    if document.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(document.get("type") or "any")


def _describe_field(document: Document) -> str:
    text = str(document.get("description") or "")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _choices(document: Document) -> tuple[str, ...]:
    """The values that the schema enforces, else those that the description lists."""
    if document.get("enum"):
        return tuple(str(choice) for choice in document["enum"])
    if document.get("type") == "boolean":
        return ("true", "false")
    named = _NAMED.search(document.get("description") or "") if document.get("type") == "string" else None
    return tuple(choice.removesuffix(" (default)") for choice in re.split(r", | or ", named[1])) if named else ()
