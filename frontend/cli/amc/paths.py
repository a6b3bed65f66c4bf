"""Paths into objects, and templates made of them, as kubectl takes them for ``jsonpath``, ``custom-columns`` and ``--sort-by``.

The part of the language that people use: fields, entries, slices, wildcards, ``..``, filters of one comparison, ``range`` and
quoted text. What is not there selects nothing. Anything else is refused with the place where it stands.
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
    """``rooted``: it begins at the whole document, wherever it stands."""

    steps: tuple[Step, ...]
    rooted: bool = False

    def find(self, value: Any) -> list[Any]:
        found = [value]
        for step in self.steps:
            found = [inner for each in found for inner in step(each)]
        return found


def path(text: str) -> Path:
    """``.a.b[*].c``, with or without its braces and its first dot."""
    bare = text.strip().removeprefix("{").removesuffix("}").strip()
    rooted, bare = bare.startswith("$"), bare.removeprefix("$").removeprefix("@")
    if bare and bare[0] not in ".[":
        bare = "." + bare
    steps, at = [], 0
    while at < len(bare) and bare[at:] != ".":
        match = _STEP.match(bare, at)
        if match is None:
            raise Problem(f"{text!r} is no path: it cannot be read from {bare[at:]!r} on")
        steps.append(_step(str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return Path(tuple(steps), rooted)


def _step(kind: str, word: str) -> Step:
    name = word[1:-1] if kind == "quoted" else re.sub(r"\\(.)", r"\1", word)
    if kind == "deep":
        return lambda value: (inner for each in _below(value) for inner in _field(each, name))
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
        raise Problem(f'[?({text})] is no filter: write one comparison, such as [?(@.type=="Ready")]')
    inner = path(match["path"] or ".")
    if match["sign"] is None:
        return lambda value: (each for each in _entries(value) if inner.find(each))
    wanted, holds = _literal(match["value"]), _COMPARE[match["sign"]]
    return lambda value: (
        each
        for each in _entries(value)
        if any(type(one) is type(wanted) and holds(one, wanted) for one in inner.find(each))
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
    yield value
    for each in _entries(value):
        yield from _below(each)


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_WORD = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'[^']*'|[^{}"'])*)\}|([^{}]+)""")
Node = Callable[[Any, Any], str]
"""Of the whole document, and of what a range has come to."""


def template(source: str) -> Callable[[Any], str]:
    """``{range .items[*]}{.metadata.name}{"\\n"}{end}``: what it prints of a document."""
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
            open_[-1][1].append(_repeated(over or path(""), inner))
        elif word != "end":
            open_[-1][1].append(
                _said(match[2] or _quoted(word)) if match[2] or word[:1] in "\"'" else _found(path(word))
            )
    if at < len(source) or len(open_) > 1 or source.count("{end}") > source.count("{range "):
        raise Problem(f"{source!r} is no template: a brace or a range does not close")
    return lambda document: "".join(node(document, document) for node in open_[0][1])


def _quoted(word: str) -> str:
    return str(json.loads(f'"{word[1:-1]}"')) if len(word) > 1 else ""


def _said(words: str) -> Node:
    return lambda root, here: words


def _found(wanted: Path) -> Node:
    return lambda root, here: " ".join(text(each) for each in wanted.find(root if wanted.rooted else here))


def _repeated(over: Path, nodes: list[Node]) -> Node:
    return lambda root, here: "".join(
        node(root, each) for each in over.find(root if over.rooted else here) for node in nodes
    )
