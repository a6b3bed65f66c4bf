"""Values of a member's answer as the types that Kubernetes gives them, in bounds; what is of another type counts as absent.

A client that is typed gives up a whole list for one time or amount that it cannot read.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fleet.kube import quantities
from fleet.kube.quantities import QuantityError

_TEXT = 512
"""Characters that are kept of a text."""
_INT32 = 2**31
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION = re.compile(r"(\d{1,9}(\.\d{1,9})?(ns|us|ms|s|m|h)){1,4}", re.ASCII)


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def mappings(values: object) -> list[Mapping[str, Any]]:
    """The mappings of a list."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def text(value: object) -> str:
    return str(value)[:_TEXT] if isinstance(value, str | int | float) else ""


def number(value: object) -> int:
    """A whole number of 32 bits."""
    return min(max(value, -_INT32), _INT32 - 1) if isinstance(value, int) else 0


def moment(value: object) -> str:
    """A time with its zone."""
    written = text(value)
    try:
        return written if _MOMENT.fullmatch(written) and datetime.fromisoformat(written) else ""
    except ValueError:
        return ""


def duration(value: object) -> str:
    """Such as 30s or 1m0s."""
    written = text(value)
    return written if _DURATION.fullmatch(written) else ""


def is_quantity(value: object) -> bool:
    try:
        quantities.parse(value)
    except QuantityError:
        return False
    return True
