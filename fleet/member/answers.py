"""Reads what a member says as JSON, without what no database takes: NUL, and halves of surrogate pairs.

Any user of a member can write them (to a container's termination message, for one), and one of them must not keep the rest of
the member from being seen.
"""

import json
import re
from typing import Any

_SUSPECT = re.compile(rb"\\u0000|\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_INSTEAD = "\N{REPLACEMENT CHARACTER}"


def parse(data: bytes) -> Any:
    """Raises `ValueError` for what is no JSON, or nested too deep to be read."""
    try:
        value = json.loads(data)
        return _clean(value) if _SUSPECT.search(data) else value
    except RecursionError as e:
        raise ValueError("nested too deep") from e


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole.replace("\0", _INSTEAD)
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value
