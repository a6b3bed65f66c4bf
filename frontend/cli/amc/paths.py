"""Paths into objects and templates of paths, in kubectl's syntax for ``jsonpath``, ``custom-columns`` and ``--sort-by``.

Supported are fields, entries, slices, wildcards, ``..``, filters with one comparison, ``range`` and quoted text. A path to a
missing field selects nothing. Any other syntax is refused, and the message shows where it begins.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from frontend.cli.problems import Problem

Step = Callable[[Any], Iterator[Any]]

_NAME = r"(?:\\.|[^\\.\[\]{}()'\"\s=!<>,|])+"
_STEP = re.compile(
    rf"""\.\.(?P<deep>{_NAME}) | \.?\[\*\](?P<every>) | \.(?P<field>{_NAME})
    | \[(?P<quoted>'[^']*'|"[^"]*")\] | \[(?P<entry>-?\d+)\] | \[(?P<slice>-?\d*:-?\d*)\] | \[\?\((?P<filter>.*?)\)\] """,
    re.VERBOSE,
)
_FILTER = re.compile(r"\s*@(?P<path>\S*?)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*)?")
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Path:
    """``rooted``: the path begins with ``$``, and so at the whole document even inside a ``range``."""

    steps: tuple[Step, ...]
    rooted: bool = False

    def find(self, value: Any) -> list[Any]:
        values = [value]
        for step in self.steps:
            values = [inner for outer in values for inner in step(outer)]
        return values


def path(text: str) -> Path:
    """Parses ``.a.b[*].c``, with or without braces and the first dot."""
    bare = text.strip().removeprefix("{").removesuffix("}").strip()
    rooted, bare = bare.startswith("$"), bare.removeprefix("$").removeprefix("@")
    if bare and bare[0] not in ".[":
        bare = "." + bare
    steps, at = [], 0
    while at < len(bare) and bare[at:] != ".":
        match = _STEP.match(bare, at)
        if match is None:
            raise Problem(f"{text!r} is not a path: {bare[at:]!r} cannot be parsed")
        steps.append(_step(str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return Path(tuple(steps), rooted)


def _step(kind: str, word: str) -> Step:
    name = word[1:-1] if kind == "quoted" else re.sub(r"\\(.)", r"\1", word)
    if kind == "deep":
        return lambda value: (match for inner in _below(value) for match in _field(inner, name))
    if kind == "every":
        return _entries
    if kind in ("field", "quoted"):
        return lambda value: _field(value, name)
    if kind == "filter":
        return _filter(word)
    first, colon, last = word.partition(":")
    start, end = int(first) if first else None, int(last) if last else None
    part = slice(start, end) if colon else slice(start, None if start == -1 else int(word) + 1)
    return lambda value: iter(value[part] if isinstance(value, list) else ())


def _filter(text: str) -> Step:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise Problem(f'[?({text})] is not a filter: write one comparison, such as [?(@.type=="Ready")]')
    inner = path(match["path"] or ".")
    if match["sign"] is None:
        return lambda value: (entry for entry in _entries(value) if inner.find(entry))
    wanted, holds = _literal(match["value"]), _COMPARE[match["sign"]]
    return lambda value: (
        entry
        for entry in _entries(value)
        if any(type(content) is type(wanted) and holds(content, wanted) for content in inner.find(entry))
    )


def _literal(text: str) -> Any:
    if text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _field(value: Any, name: str) -> Iterator[Any]:
    if name == "*":
        yield from _entries(value)
    elif isinstance(value, dict) and name in value:
        yield value[name]


def _entries(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _below(value: Any) -> Iterator[Any]:
    """The value itself, and all values inside it."""
    yield value
    for entry in _entries(value):
        yield from _below(entry)


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_WORD = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'[^']*'|[^{}"'])*)\}|([^{}]+)""")
Node = Callable[[Any, Any], str]
"""Renders a part of a template, from the whole document and the current value of the enclosing range."""


def template(source: str) -> Callable[[Any], str]:
    """Parses a template such as ``{range .items[*]}{.metadata.name}{"\\n"}{end}``; returns a function that renders it."""
    open_: list[tuple[Path | None, list[Node]]] = [(None, [])]
    at = 0
    for match in _WORD.finditer(source):
        if match.start() != at:
            break
        at, word = match.end(), (match[1] or "").strip()
        if word.startswith("range "):
            open_.append((path(word.removeprefix("range ")), []))
        elif word == "end" and len(open_) > 1:
            over, inner = open_.pop()
            open_[-1][1].append(_range_node(over or path(""), inner))
        elif word != "end":
            is_text = match[2] or word[:1] in "\"'"
            open_[-1][1].append(_text_node(match[2] or _quoted(word)) if is_text else _path_node(path(word)))
    if at < len(source) or len(open_) > 1 or source.count("{end}") > source.count("{range "):
        raise Problem(f"{source!r} is not a template: a brace or a range is not closed")
    return lambda document: "".join(node(document, document) for node in open_[0][1])


def _quoted(word: str) -> str:
    return str(json.loads(f'"{word[1:-1]}"')) if len(word) > 1 else ""


def _text_node(content: str) -> Node:
    return lambda root, here: content


def _path_node(wanted: Path) -> Node:
    return lambda root, here: " ".join(map(text, wanted.find(root if wanted.rooted else here)))


def _range_node(over: Path, nodes: list[Node]) -> Node:
    return lambda root, here: "".join(
        node(root, value) for value in over.find(root if over.rooted else here) for node in nodes
    )
