"""Kubernetes quantities (``100m``, ``1.5``, ``1Gi``, ``2e3``) as whole numbers, exactly, and back.

Follows apimachinery's ``resource.Quantity``: binary and decimal suffixes, a decimal exponent, rounding away from zero to the
unit asked for. What a 64-bit amount cannot hold is refused with an error, not clamped.
"""

import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

MAX = 2**63 - 1
_LONGEST = 64
_SYNTAX = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,4}|[KMGTPE]i|[numkMGTPE])?", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class QuantityError(ValueError):
    """The text is not a quantity, or not a valid amount of a resource. The message contains it."""


def parse(value: object) -> Decimal:
    """The exact value of a quantity. Numbers are accepted too, because YAML reads unquoted quantities as numbers."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise QuantityError(f"{_shown(value)} is not a quantity such as 2, 500m or 1Gi")
    text = str(value)
    match = _SYNTAX.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(f"{_shown(value)} is not a quantity such as 2, 500m or 1Gi")
    sign, digits, suffix = match.groups()
    number = _scaled(Decimal(digits), suffix or "")
    if number > MAX:
        raise QuantityError(f"{_shown(value)} is larger than any amount (2^63 - 1)")
    return number.copy_negate() if sign == "-" else number


def _scaled(number: Decimal, suffix: str) -> Decimal:
    with localcontext() as exact:
        exact.prec = 200
        exact.Emax, exact.Emin = 99999, -99999
        if suffix in _BINARY:
            return number * (1 << _BINARY[suffix])
        if suffix in _DECIMAL:
            return number.scaleb(_DECIMAL[suffix])
        return number.scaleb(int(suffix[1:])) if suffix else number


def units(value: object) -> int:
    """Whole units (bytes, devices, pods), rounded up; negative amounts are refused."""
    return _known_units(value) if type(value) in _PLAIN else _units(value)


def milli(value: object) -> int:
    """Whole thousandths (milli-CPU), rounded up; negative amounts are refused."""
    return _known_milli(value) if type(value) in _PLAIN else _milli(value)


def _units(value: object) -> int:
    return _whole(parse(value), value)


def _milli(value: object) -> int:
    return _whole(_scaled(parse(value), "k"), value)


# A fleet's pods and nodes state few different amounts, again and again. Errors are not remembered.
_PLAIN = frozenset({str, int})
_known_units: Callable[[Any], int] = lru_cache(maxsize=4096, typed=True)(_units)
_known_milli: Callable[[Any], int] = lru_cache(maxsize=4096, typed=True)(_milli)


def _whole(number: Decimal, value: object) -> int:
    if number < 0:
        raise QuantityError(f"{_shown(value)} is negative: an amount is 0 or more")
    if number > MAX:
        raise QuantityError(f"{_shown(value)} is larger than any amount (2^63 - 1)")
    if number < Decimal("1e-30"):
        return 1 if number else 0
    with localcontext() as exact:
        exact.prec = 200
        return int(number.to_integral_value(rounding="ROUND_CEILING"))


def from_milli(amount: int) -> str:
    """The canonical text of thousandths: ``1500`` is ``1500m``, ``2000`` is ``2``."""
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


def from_bytes(amount: int) -> str:
    """The canonical text of bytes: the largest binary suffix that loses nothing."""
    for suffix, shift in reversed(_BINARY.items()):
        if amount and amount % (1 << shift) == 0:
            return f"{amount >> shift}{suffix}"
    return str(amount)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
