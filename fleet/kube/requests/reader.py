"""The only parser of JSON and YAML from untrusted clients. All APIs use it; its cost is bounded before any value is built.

Depth and number of values are limited, no parser recurses, and the work is linear in the length of the text. JSON is measured
before it is parsed. YAML is built from libyaml's events, without a composer, and only values that JSON can express are
accepted: no dates, no base-60 numbers, only the tags of plain values. Plain values are interpreted as Kubernetes does (``yes``
is true, ``0644`` is octal).
"""

import json
import math
import re
from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn

import yaml

MAX_DEPTH = 100
MAX_VALUES = 200_000
"""The limit for all documents together. An alias counts as many values as it refers to."""
_MAX_DIRECTIVES = 16
"""Limited because libyaml compares each ``%TAG`` with all before it."""

Pairs = Callable[[Sequence[tuple[Any, Any]]], dict[Any, Any]]

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DIRECTIVE = re.compile(r"(?:^|[\r\n\x85\u2028\u2029])%")
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_BRACKETS = bytes(each for each in range(256) if each not in b"[]{},")
_STEPS = bytes(1 if each in b"[{" else 255 if each in b"]}" else 0 for each in range(256))
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)")
_DECIMAL = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAGS: Mapping[str, tuple[type, ...]] = {
    "tag:yaml.org,2002:null": (type(None),),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
}
_TEXT, _MAP, _LIST = "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"
_MERGE = object()
"""The key ``<<``."""


class Unreadable(ValueError):
    """The text cannot be parsed. Lines and columns begin with 1; they are 0 if the position is unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)
        self.problem, self.line, self.column = problem, line, column


class Excessive(Unreadable):
    """The text is nested too deeply or has too many values. It must not be passed to another parser."""


def read_json(raw: bytes | str, pairs: Pairs = dict, *, any_text: bool = False) -> Any:
    """Parses JSON. ``any_text`` accepts zero bytes and unpaired surrogates in strings, as a real API server does."""
    text = _text(raw)
    _measure(text.encode("utf-8", "surrogatepass"))
    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as e:
        raise Unreadable(e.msg, e.lineno, e.colno) from e
    except ValueError as e:
        raise Unreadable(str(e)) from e
    if not any_text and _SUSPECT.search(text):
        _check_texts(value)
    return value


def read_yaml(
    raw: bytes | str, *, pairs: Pairs = dict, keys: Callable[[Any], Hashable] | None = None, aliases: bool = False
) -> list[Any]:
    """Parses all YAML documents. ``keys`` converts keys that are not strings; without it they are refused.

    Anchors and aliases are refused unless ``aliases`` is true.
    """
    text = _text(raw)
    if len(_DIRECTIVE.findall(text)) > _MAX_DIRECTIVES:
        raise Excessive(f"more than {_MAX_DIRECTIVES} lines begin with %")
    builder = _Builder(pairs, keys, aliases)
    try:
        parser = _Parser(text)
        try:
            while parser.check_event():
                builder.take(parser.get_event())
        finally:
            parser.dispose()
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise Unreadable(str(e.problem or e.context), *place) from e
    except yaml.reader.ReaderError as e:
        raise Unreadable(f"{e.reason} (character {e.position})") from e
    except UnicodeEncodeError as e:
        raise Unreadable("half a character stands alone") from e
    return builder.documents


def check_size(value: Any) -> None:
    """Raises Excessive if the value is above the limits. For values composed of several parsed ones, such as after a patch."""
    pending, values = [(value, 0)], 0
    while pending:
        inner, depth = pending.pop()
        values += 1
        if values > MAX_VALUES:
            raise Excessive(f"there are more than {MAX_VALUES} values")
        if not isinstance(inner, (dict, list)):
            continue
        if depth >= MAX_DEPTH:
            raise Excessive(f"it is nested deeper than {MAX_DEPTH} levels")
        pending += [(child, depth + 1) for child in (inner.values() if isinstance(inner, dict) else inner)]


def _text(raw: bytes | str) -> str:
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise Unreadable(f"byte {e.start} cannot be read: this is not UTF-8 text") from e


def _measure(raw: bytes) -> None:
    """Raises Excessive for JSON above the limits, by counting the brackets and commas outside of strings."""
    outside = raw.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    structure = b"".join(outside).translate(None, _BRACKETS)
    if len(structure) - structure.count(b"]") - structure.count(b"}") >= MAX_VALUES:
        raise Excessive(f"there are more than {MAX_VALUES} values")
    if max(accumulate(array("b", structure.translate(_STEPS))), default=0) > MAX_DEPTH:
        raise Excessive(f"it is nested deeper than {MAX_DEPTH} levels")


def _check_texts(value: Any) -> None:
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, str):
            _check_text(inner)
        elif isinstance(inner, dict):
            pending += [*inner.keys(), *inner.values()]
        elif isinstance(inner, list):
            pending += inner


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise Unreadable("a text contains a zero byte")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise Unreadable("half a character stands alone") from e


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number JSON has")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is larger than any number")
    return number


@dataclass(slots=True)
class _Container:
    """A list or an object that is not complete yet. The items of an object are its keys and values in turn."""

    mapping: bool
    anchor: str | None
    items: list[Any] = field(default_factory=list)
    size: int = 1
    height: int = 1


class _Builder:
    """Builds values from libyaml's events."""

    def __init__(self, pairs: Pairs, keys: Callable[[Any], Hashable] | None, aliases: bool) -> None:
        self.documents: list[Any] = []
        self._pairs, self._keys, self._aliases = pairs, keys, aliases
        self._open: list[_Container] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """The value of each anchor, the number of values in it, and its depth."""
        self._values = 0

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._add(self._scalar(event), 1, 0, event, event.anchor)
            case yaml.CollectionStartEvent():
                self._begin(event)
            case yaml.CollectionEndEvent():
                self._end(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self._anchors.clear()

    def _begin(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _MAP if mapping else _LIST):
            raise _fault(event, f"the tag {event.tag} is not taken")
        if self._at_key():
            raise _fault(event, "a key must be a text, not a list or an object")
        self._note_anchor(event)
        if len(self._open) >= MAX_DEPTH:
            raise _fault(event, f"it is nested deeper than {MAX_DEPTH} levels", Excessive)
        self._open.append(_Container(mapping, event.anchor))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        value = self._object(done.items, event) if done.mapping else done.items
        self._add(value, done.size, done.height, event, done.anchor)

    def _add(self, value: Any, size: int, height: int, event: Any, anchor: str | None) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise _fault(event, f"there are more than {MAX_VALUES} values", Excessive)
        if anchor is not None:
            if not self._aliases:
                raise _fault(event, "anchors and aliases are not taken here: write the value out")
            self._anchors[anchor] = value, size, height
        if not self._open:
            self.documents.append(value)
            return
        parent = self._open[-1]
        parent.items.append(value)
        parent.size += size
        parent.height = max(parent.height, height + 1)

    def _alias(self, event: Any) -> None:
        self._note_anchor(event)
        if event.anchor not in self._anchors:
            raise _fault(event, f"the alias *{event.anchor} stands for nothing, or for what it is part of")
        value, size, height = self._anchors[event.anchor]
        self._values += size
        if len(self._open) + height > MAX_DEPTH:
            raise _fault(event, f"it is nested deeper than {MAX_DEPTH} levels", Excessive)
        if self._at_key() and isinstance(value, (dict, list)):
            raise _fault(event, "a key must be a text, not a list or an object")
        self._add(value, size, height, event, None)

    def _note_anchor(self, event: Any) -> None:
        if event.anchor is not None and not self._aliases:
            raise _fault(event, "anchors and aliases are not taken here: write the value out")

    def _at_key(self) -> bool:
        return bool(self._open) and self._open[-1].mapping and len(self._open[-1].items) % 2 == 0

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if "\x00" in text:
            raise _fault(event, "a text contains a zero byte")
        plain = event.implicit[0]
        if event.tag in (None, "!"):
            if plain and text == "<<" and self._at_key():
                return _MERGE
            return self._key(_plain(text, event), event) if plain else text
        if event.tag == _TEXT:
            return text
        if event.tag not in _TAGS:
            raise _fault(event, f"the tag {event.tag} is not taken")
        value = _plain(text, event)
        if type(value) not in _TAGS[event.tag]:
            raise _fault(event, f"{text[:40]!r} is no {event.tag.rpartition(':')[2]}")
        return self._key(value, event)

    def _key(self, value: Any, event: Any) -> Any:
        if isinstance(value, str) or not self._at_key():
            return value
        if self._keys is None:
            raise _fault(event, f"the key {event.value[:40]} is no text: put it in quotes")
        return self._keys(value)

    def _object(self, items: list[Any], event: Any) -> dict[Any, Any]:
        pairs = list(zip(items[::2], items[1::2], strict=True))
        merged: dict[Any, Any] = {}
        for key, value in pairs:
            if key is _MERGE:
                for source in reversed(value if isinstance(value, list) else [value]):
                    if not isinstance(source, dict):
                        raise _fault(event, "only objects can be merged in by <<")
                    merged |= source
        if not merged:
            return self._pairs([source for source in pairs if source[0] is not _MERGE])
        own = self._pairs([source for source in pairs if source[0] is not _MERGE])
        for key, value in merged.items():
            own.setdefault(key, value)
        return own


def _plain(text: str, event: Any) -> Any:
    """The value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "-+.0123456789":
        return text
    if _NO_NUMBER.fullmatch(text):
        raise _fault(event, f"{text} is no number JSON has")
    try:
        if _INTEGER.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _DECIMAL.fullmatch(text):
            return _finite(text.replace("_", ""))
    except ValueError as e:
        raise _fault(event, f"{text[:40]} is no number that can be read") from e
    return text


def _integer(text: str) -> Any:
    digits = text.lstrip("-+")
    if digits.startswith(("0b", "0x")):
        return int(text, 0)
    if digits.startswith("0") and len(digits) > 1:
        return int(text, 8) if set(digits) <= set("01234567") else text
    return int(text)


def _fault(event: Any, problem: str, kind: type[Unreadable] = Unreadable) -> Unreadable:
    return kind(problem, event.start_mark.line + 1, event.start_mark.column + 1)
