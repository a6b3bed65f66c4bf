"""Finds values in objects by paths in kubectl's syntax for ``jsonpath``: ``{.conditions[?(@.type=="Ready")].status}``.

Supported are fields, entries, slices, wildcards, ``..`` and filters with one comparison. A path to a missing field selects
nothing. Any other syntax is refused. The objects are of members, so what a path may select is bounded. No I/O.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

Step = Callable[[Any], Iterator[Any]]

LONGEST = 1024
"""Characters of a path."""
MOST_VALUES = 10_000
"""Values that one step may select; a path that selects more finds nothing."""
_NAME = r"(?:\\.|[^\\.\[\]{}()'\"\s=!<>,|*])+"
_STEP = re.compile(
    rf"""\.\.(?P<deep>{_NAME}) | \.?\[\*\](?P<every>) | \.\*(?P<all>) | \.(?P<field>{_NAME})
    | \[(?P<quoted>'[^']*'|"[^"]*")\] | \[(?P<entry>-?\d{{1,9}})\] | \[(?P<slice>-?\d{{0,9}}:-?\d{{0,9}})\]
    | \[\?\((?P<filter>[^()]*)\)\] """,
    re.VERBOSE | re.ASCII,
)
_FILTER = re.compile(r"\s*@(?P<path>[^\s=!<>]*)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>\S(?:.*\S)?)\s*)?")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """The text is not a path."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    steps: tuple[Step, ...]

    def find(self, value: Any) -> list[Any]:
        values = [value]
        for step in self.steps:
            values = list(islice((inner for outer in values for inner in step(outer)), MOST_VALUES + 1))
            if len(values) > MOST_VALUES:
                return []
        return values


def parse(text: str) -> JsonPath:
    """Parses ``{.a.b[*].c}``, with or without braces, ``$`` and the first dot. Raises `PathError`."""
    bare = text.strip()
    if len(bare) > LONGEST:
        raise PathError(f"has {len(bare)} characters, more than {LONGEST}")
    if bare.startswith("{") or bare.endswith("}"):
        if not (bare.startswith("{") and bare.endswith("}")):
            raise PathError(f"{text!r} has a brace that is not closed")
        bare = bare[1:-1].strip()
    bare = bare.removeprefix("$")
    if bare and bare[0] not in ".[":
        bare = "." + bare
    if bare.count("..") > 1:
        raise PathError(f"{text!r} has '..' more than once: values inside each other would be searched again and again")
    if bare in ("", "."):
        raise PathError(f"{text!r} selects no field: write a path such as {{.replicaStatuses.Worker.active}}")
    return JsonPath(_steps(bare))


def shown(values: list[Any]) -> str:
    """The values as kubectl prints them: strings as they are, all others as JSON, with spaces between."""
    return " ".join(value if isinstance(value, str) else _json(value) for value in values)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _steps(bare: str) -> tuple[Step, ...]:
    steps, at = [], 0
    while at < len(bare):
        match = _STEP.match(bare, at)
        if match is None:
            raise PathError(f"{bare[at:]!r} cannot be parsed")
        steps.append(_step(str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return tuple(steps)


def _step(kind: str, word: str) -> Step:
    name = word[1:-1] if kind == "quoted" else re.sub(r"\\(.)", r"\1", word)
    match kind:
        case "deep":
            return lambda value: (match for inner in _below(value) for match in _field(inner, name))
        case "every" | "all":
            return _entries
        case "field" | "quoted":
            return lambda value: _field(value, name)
        case "filter":
            return _filter(word)
    first, colon, last = word.partition(":")
    start, end = int(first) if first else None, int(last) if last else None
    part = slice(start, end) if colon else slice(start, None if start == -1 else int(word) + 1)
    return lambda value: iter(value[part] if isinstance(value, list) else ())


def _filter(text: str) -> Step:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise PathError(f'[?({text})] is not a filter: write one comparison, such as [?(@.type=="Ready")]')
    inner = JsonPath(_steps(match["path"]))
    if match["sign"] is None:
        return lambda value: (entry for entry in _entries(value) if inner.find(entry))
    wanted, holds = _literal(match["value"]), _COMPARE[match["sign"]]
    return lambda value: (
        entry for entry in _entries(value) if any(_is(actual, wanted, holds) for actual in inner.find(entry))
    )


def _is(actual: Any, wanted: Any, holds: Callable[[Any, Any], bool]) -> bool:
    """Values of different types are never equal or ordered. Lists and objects are not compared."""
    return type(actual) is type(wanted) and isinstance(actual, str | int | float) and holds(actual, wanted)


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _field(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, Mapping) and name in value:
        yield value[name]


def _entries(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _below(value: Any) -> Iterator[Any]:
    """The value itself, and all values inside it, in their order."""
    left = [value]
    while left:
        inner = left.pop()
        yield inner
        left += reversed(list(_entries(inner)))
