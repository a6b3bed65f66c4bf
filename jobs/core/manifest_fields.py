"""Reads fields of a person's manifest one by one and collects what is wrong with all of them.

A fault names the field by its path and says what to do; reading goes on with a default, so that everything is mended at once.
"""

from dataclasses import dataclass, field
from typing import Any

from fleet.errors import FieldFault

Manifest = dict[str, Any]


@dataclass(slots=True)
class Faults:
    """Collects every fault of a manifest, so that a person mends all of them at once."""

    found: list[FieldFault] = field(default_factory=list)

    def add(self, path: str, detail: str) -> None:
        self.found.append(FieldFault(path, detail))

    def mapping(self, value: object, path: str, *, required: bool = False) -> Manifest:
        """``value`` if it is an object, else an empty one and a fault."""
        if isinstance(value, dict):
            return value
        if value is not None or required:
            self.add(path, "is required" if value is None else f"must be an object, not {_type(value)}")
        return {}

    def whole(self, value: object, path: str, *, default: int, at_least: int = 0) -> int:
        """``value`` if it is a whole number in range, else ``default`` and a fault."""
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(path, f"must be a whole number, not {_shown(value)}")
            return default
        if not at_least <= value <= 2**31 - 1:
            self.add(path, f"must be between {at_least} and {2**31 - 1}, not {value}")
            return default
        return value

    def one_of(self, value: object, path: str, choices: tuple[str, ...]) -> None:
        if value is not None and value not in choices:
            self.add(path, f"must be one of {', '.join(choices)}, not {_shown(value)}")

    def flag(self, value: object, path: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self.add(path, f"must be true or false, not {_shown(value)}")
        return False


def _type(value: object) -> str:
    return {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}.get(
        type(value), type(value).__name__
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
