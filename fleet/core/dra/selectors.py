"""Selectors of DeviceClasses: the part of CEL in which classes are written, evaluated on the devices of a member. Pure.

Known are ``device.driver``, attributes and capacities by their domain, comparisons, ``in``, ``!``, ``&&``, ``||``, ``has``,
``startsWith``, ``endsWith``, ``contains`` and ``compareTo(quantity(...))``. An expression with anything else is `Unknown`: no
device is known to be of its class. What a device does not have makes a part of an expression neither true nor false, as in CEL.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from fleet.kube import quantities
from fleet.kube.quantities import QuantityError

Value = Any
Expression = Callable[["Device"], Value]
_LONGEST, _DEEPEST, _MOST_MEMBERS, _MOST_DIGITS = 10 * 1024, 40, 8, 19
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\\n]|\\["'\\])*"|'(?:[^'\\\n]|\\["'\\])*')|(?P<number>-?\d+)(?![\w.])"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign>&&|\|\||==|!=|<=|>=|[<>!()\[\].,]))"""
)
_COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_METHODS: Mapping[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
}


class Unknown(ValueError):
    """The expression uses what is not known here."""


class _Absent(LookupError):
    """The device does not have what the expression asks for."""


@dataclass(frozen=True, slots=True)
class Device:
    """What an expression sees of a device: attributes and capacities by domain and name."""

    driver: str
    attributes: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    capacity: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def parse(expression: str) -> Callable[[Device], bool]:
    """Whether a device is selected; raises `Unknown`."""
    if len(expression) > _LONGEST:
        raise Unknown(f"it has more than {_LONGEST} characters")
    parser = _Parser(_tokens(expression))
    holds = parser.either()
    if parser.ahead:
        raise Unknown(f"{parser.ahead!r} is not expected")

    def selects(device: Device) -> bool:
        try:
            return holds(device) is True
        except (_Absent, TypeError):
            return False

    return selects


def _tokens(text: str) -> list[str]:
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unknown(f"{text[at : at + 20].strip()!r} is not known")
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


class _Parser:
    """By recursive descent, as deep as `_DEEPEST` parentheses."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    @property
    def ahead(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def either(self) -> Expression:
        parts = [self._both()]
        while self._take("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda device: _first(parts, device, decides=True)

    def _both(self) -> Expression:
        parts = [self._comparison()]
        while self._take("&&"):
            parts.append(self._comparison())
        return parts[0] if len(parts) == 1 else lambda device: _first(parts, device, decides=False)

    def _comparison(self) -> Expression:
        left = self._unary()
        if compare := _COMPARE.get(self.ahead):
            self._next()
            right = self._unary()
            return lambda device: compare(left(device), right(device))
        if self._take("in"):
            if self.ahead == "[":
                choices = self._list()
                return lambda device: left(device) in [choice(device) for choice in choices]
            held = self._unary()
            return lambda device: left(device) in held(device)
        return left

    def _unary(self) -> Expression:
        if self._take("!"):
            inner = self._nested(self._unary)
            return lambda device: not _flag(inner(device))
        return self._members(self._primary())

    def _primary(self) -> Expression:
        word = self._next()
        if word == "(":
            inner = self._nested(self.either)
            self._expect(")")
            return inner
        if word[:1] in "\"'" and word:
            return _constant(re.sub(r"\\(.)", r"\1", word[1:-1]))
        if word.lstrip("-").isdigit():
            if len(word.lstrip("-")) > _MOST_DIGITS:
                raise Unknown(f"a number has more than {_MOST_DIGITS} digits")
            return _constant(int(word))
        if word in ("true", "false"):
            return _constant(word == "true")
        if word == "device":
            return lambda device: device
        if word == "has":
            self._expect("(")
            inner = self._nested(self.either)
            self._expect(")")
            return lambda device: _has(inner, device)
        if word == "quantity":
            return _constant(_quantity(self._argument()))
        raise Unknown(f"{word or 'its end'!r} is not known")

    def _members(self, value: Expression) -> Expression:
        for _ in range(_MOST_MEMBERS + 1):
            if self._take("."):
                value = self._member(value, self._next())
            elif self._take("["):
                key = self._nested(self.either)
                self._expect("]")
                value = _item(value, key)
            else:
                return value
        raise Unknown(f"one value has more than {_MOST_MEMBERS} members")

    def _member(self, value: Expression, name: str) -> Expression:
        if self.ahead != "(":
            if not name.isidentifier():
                raise Unknown(f"{name!r} is not known")
            return _item(value, _constant(name))
        self._expect("(")
        argument = self._nested(self.either)
        self._expect(")")
        if name == "compareTo":
            return lambda device: _order(value(device), argument(device))
        method = _METHODS.get(name)
        if method is None:
            raise Unknown(f"{name}() is not known")
        return lambda device: method(value(device), argument(device))

    def _list(self) -> list[Expression]:
        self._expect("[")
        choices: list[Expression] = []
        while not self._take("]"):
            choices.append(self._unary())
            if self.ahead != "]":
                self._expect(",")
        return choices

    def _argument(self) -> str:
        self._expect("(")
        word = self._next()
        self._expect(")")
        return word[1:-1]

    def _nested(self, parse: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unknown(f"it is nested deeper than {_DEEPEST}")
        inner = parse()
        self._depth -= 1
        return inner

    def _take(self, word: str) -> bool:
        if self.ahead != word:
            return False
        self._at += 1
        return True

    def _next(self) -> str:
        word = self.ahead
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise Unknown(f"{word!r} is expected where {self.ahead or 'its end'!r} is")


def _constant(value: Value) -> Expression:
    return lambda device: value


def _first(parts: list[Expression], device: Device, *, decides: bool) -> bool:
    """Of ``||`` one true part decides, of ``&&`` one false part, whatever the device lacks for the others."""
    absent: Exception | None = None
    for part in parts:
        try:
            if _flag(part(device)) is decides:
                return decides
        except (_Absent, TypeError) as e:
            absent = e
    if absent is not None:
        raise absent
    return not decides


def _flag(value: Value) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not a boolean")
    return value


def _item(value: Expression, key: Expression) -> Expression:
    def item(device: Device) -> Value:
        held, name = value(device), key(device)
        if isinstance(held, Device):
            held = {"driver": held.driver, "attributes": held.attributes, "capacity": held.capacity}
        if not isinstance(held, Mapping) or name not in held:
            raise _Absent(name)
        return held[name]

    return item


def _has(inner: Expression, device: Device) -> bool:
    try:
        inner(device)
    except _Absent:
        return False
    return True


def _order(one: Value, other: Value) -> int:
    return bool(one > other) - bool(one < other)


def _quantity(text: str) -> int:
    try:
        return quantities.units(text)
    except (QuantityError, ValueError) as e:
        raise Unknown(f"{text!r} is not a quantity") from e
