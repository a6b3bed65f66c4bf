"""JSON merge patch (RFC 7386): the patch every API server takes for every kind."""

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` merged in; neither is changed. Null removes a key, anything but an object replaces."""
    if not isinstance(patch, dict):
        return patch
    base = target if isinstance(target, dict) else {}
    merged = {key: value for key, value in base.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if value is not None:
            merged[key] = merge(base.get(key), value)
    return merged
