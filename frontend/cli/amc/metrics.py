"""Converts amounts of the metrics API (``251263829n``, ``1Ki``) to the units that ``kubectl top`` prints. No I/O."""

from collections.abc import Iterable
from fractions import Fraction

_UNITS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}
UNKNOWN = "<unknown>"


def number(text: str) -> Fraction | None:
    """The value of an amount, or None if the text is not one."""
    digits = text.rstrip("numkKMGTi")
    unit = text[len(digits) :]
    try:
        return Fraction(digits) * (_UNITS[unit] if unit else 1)
    except (ValueError, KeyError):
        return None


def cores(amounts: Iterable[str]) -> str:
    total = sum((number(amount) or Fraction(0) for amount in amounts), Fraction(0))
    return f"{-(-total * 1000 // 1)}m"


def mebibytes(amounts: Iterable[str]) -> str:
    total = sum((number(amount) or Fraction(0) for amount in amounts), Fraction(0))
    return f"{int(total / 2**20)}Mi"


def share(used: str, offered: str) -> str:
    whole = number(offered)
    return f"{int((number(used) or 0) * 100 / whole)}%" if whole else UNKNOWN
