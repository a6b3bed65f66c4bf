"""What may be written at one place of an object: read from the document of its kind, one step of the path at a time.

For editors that offer what comes next. Knows nothing of which kinds there are, and judges no values.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Document = Mapping[str, Any]
ENTRY: Final = "[]"
"""The step from a list to its entries; any other word is as good."""
TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "int-or-string", "any")
_LONGEST = 300
_WORD = r"[A-Za-z][\w.-]*(?: \(default\))?"
_NAMED = re.compile(rf"(?:^|: |\bOne of )({_WORD}(?:, {_WORD})*(?:,| or) {_WORD})\.$")
"""How descriptions end that name the values of a text: "One of A, B." and "When it is pulled: A, B (default) or C."."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    """One of `TYPES`."""
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a schema is described; a place without a description has neither fields nor choices."""

    type: str = "any"
    description: str = ""
    fields: tuple[Field, ...] = ()
    choices: tuple[str, ...] = ()


def at(document: Document, components: Mapping[str, Document], path: Sequence[str]) -> Place:
    """``components`` are the documents it refers to, by name."""
    found = _resolved(document, components)
    for step in path:
        inner = _below(found, step)
        if inner is None:
            return Place()
        found = _resolved(inner, components)
    return Place(_type(found), _describe_field(found), tuple(_fields(found, components)), _choices(found))


def _resolved(document: Document, components: Mapping[str, Document]) -> Document:
    """With the words of who refers, where it has some."""
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
        found = _resolved(inner, components)
        yield Field(name, _type(found), _describe_field(found), name in required)


def _type(document: Document) -> str:
    if document.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(document.get("type") or "any")


def _describe_field(document: Document) -> str:
    text = str(document.get("description") or "")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _choices(document: Document) -> tuple[str, ...]:
    """Those that are enforced; else those the description names."""
    if document.get("enum"):
        return tuple(str(each) for each in document["enum"])
    if document.get("type") == "boolean":
        return ("true", "false")
    named = _NAMED.search(document.get("description") or "") if document.get("type") == "string" else None
    return tuple(each.removesuffix(" (default)") for each in re.split(r", | or ", named[1])) if named else ()
