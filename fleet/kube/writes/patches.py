"""Patches: JSON merge patch (RFC 7386), JSON patch (RFC 6902), and the strategic merge patch that kubectl and the official
clients send for built-in kinds. No function changes its arguments.
"""

import json
from typing import Any

from fleet.kube.requests import reader

_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "ownerReferences": "uid",
    "conditions": "type",
    "secrets": "name",
    "addresses": "type",
    "topologySpreadConstraints": "topologyKey",
    "hostAliases": "ip",
}
"""Merge keys of lists in built-in kinds."""
_SETS = ("finalizers",)
_DIRECTIVES = ("$setElementOrder/", "$retainKeys", "$patch")
_DELETE_FROM = "$deleteFromPrimitiveList/"


MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 1024 * 1024
"""How many bytes the copy operations of one JSON patch may add: the limit of a request body, as in a real API server."""
_MAX_MOVED = 20_000_000
"""How many entries of lists and objects one JSON patch may copy: each operation copies the containers that it changes."""
_LONGEST_INDEX = 9


class PatchError(ValueError):
    """The patch is malformed, or cannot be applied to the object."""


def merge(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` merged in. A null removes a key; any other value except an object replaces it."""
    if not isinstance(patch, dict):
        return patch
    base = target if isinstance(target, dict) else {}
    merged = {key: value for key, value in base.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if value is not None:
            merged[key] = merge(base.get(key), value)
    return merged


def strategic(target: Any, patch: Any) -> Any:
    """Like `merge`, but lists whose entries have a merge key are merged entry by entry."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    base = target if isinstance(target, dict) else {}
    merged = {key: value for key, value in base.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            if not isinstance(value, list):
                raise PatchError(f"{key} must be a list")
            without = {_plain_key(key, each) for each in value}
            merged[field] = [each for each in _plain_list(field, merged) if _plain_key(field, each) not in without]
        elif value is not None and not key.startswith(_DIRECTIVES):
            merged[key] = _strategic_value(key, base.get(key), value)
    return merged


def _strategic_value(field: str, target: Any, value: Any) -> Any:
    if not isinstance(value, list):
        return strategic(target, value)
    old = target if isinstance(target, list) else []
    if field in _SETS:
        return list({_plain_key(field, each): each for each in [*old, *value]}.values())
    key = _list_key(field, [*old, *value])
    return _merge_entries(old, value, key) if key else value


def _plain_list(field: str, parent: dict[str, Any]) -> list[Any]:
    listed = parent.get(field)
    if listed is not None and not isinstance(listed, list):
        raise PatchError(f"{field} is no list of which entries could be deleted")
    return listed or []


def _plain_key(field: str, entry: Any) -> tuple[type, Any]:
    if isinstance(entry, (dict, list)):
        raise PatchError(f"entries of {field} must be plain values")
    return type(entry), entry


def _list_key(field: str, entries: list[Any]) -> str:
    if not all(isinstance(each, dict) for each in entries):
        return ""
    if field == "ports":
        return "containerPort" if any("containerPort" in each for each in entries) else "port"
    return _KEYS.get(field, "")


def _merge_entries(old: list[Any], new: list[Any], key: str) -> list[Any]:
    if any(entry.get("$patch") == "replace" for entry in new):
        return [entry for entry in new if "$patch" not in entry]
    merged = {_entry_name(entry, key): entry for entry in old}
    for entry in new:
        name = _entry_name(entry, key)
        if entry.get("$patch") == "delete":
            merged.pop(name, None)
        else:
            merged[name] = strategic(merged.get(name, {}), entry)
    return list(merged.values())


def _entry_name(entry: dict[str, Any], key: str) -> str | int:
    name = entry.get(key)
    if not isinstance(name, (str, int)):
        raise PatchError(f"an entry of a merged list has no {key}")
    return name


def json_patch(target: Any, operations: Any) -> Any:
    """Applies the operations of RFC 6902, all or none."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON patch has at most {MAX_OPERATIONS} operations")
    budget = _Budget()
    for each in operations:
        target = _operate(target, each, budget)
    try:
        reader.check_size(target)
    except reader.Excessive as e:
        raise PatchError(f"the patched object is too large: {e}") from e
    return target


class _Budget:
    """The remaining work that one patch may cause. Without a limit, a small patch could need gigabytes."""

    def __init__(self) -> None:
        self._copied, self._moved = MAX_COPIED, _MAX_MOVED

    def copy(self, value: Any) -> None:
        self._copied -= len(json.dumps(value))
        if self._copied < 0:
            raise PatchError(f"the copies of a JSON patch may add {MAX_COPIED} bytes at most")

    def move(self, entries: int) -> None:
        self._moved -= entries
        if self._moved < 0:
            raise PatchError("the patch changes too much of too large an object: send fewer operations, or the object")


def _operate(target: Any, operation: dict[str, Any], budget: _Budget) -> Any:
    kind, path = operation.get("op"), _pointer(operation.get("path"))
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise PatchError(f"{kind} needs a value")
    match kind:
        case "add" | "replace" | "remove":
            return _edit(target, path, kind, operation.get("value"), budget)
        case "test":
            if _find(target, path) != operation["value"]:
                raise PatchError(f"testing value {operation['path'][:200]} failed")
            return target
        case "move" | "copy":
            source = _pointer(operation.get("from"))
            value = _find(target, source)
            if kind == "copy":
                budget.copy(value)
                return _edit(target, path, "add", value, budget)
            return _edit(_edit(target, source, "remove", None, budget), path, "add", value, budget)
    raise PatchError(f"unexpected kind of operation: {str(kind)[:80]!r}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{str(text)[:80]!r} is no path such as /metadata/labels")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _find(target: Any, path: list[str]) -> Any:
    for part in path:
        target = target[_place(target, part, adding=False)]
    return target


def _edit(target: Any, path: list[str], kind: str, value: Any, budget: _Budget) -> Any:
    if not path:
        return None if kind == "remove" else value
    place = _place(target, path[0], adding=kind == "add" and len(path) == 1)
    budget.move(len(target))
    copy = list(target) if isinstance(target, list) else dict(target)
    if len(path) > 1:
        copy[place] = _edit(copy[place], path[1:], kind, value, budget)
    elif kind == "remove":
        del copy[place]
    elif kind == "add" and isinstance(copy, list):
        copy.insert(place, value)
    else:
        copy[place] = value
    return copy


def _place(target: Any, part: str, *, adding: bool) -> Any:
    """The key or index that ``part`` names. Raises PatchError if it neither exists nor may be added."""
    if isinstance(target, dict) and (adding or part in target):
        return part
    if isinstance(target, list):
        if adding and part == "-":
            return len(target)
        number = int(part) if part.isascii() and part.isdigit() and len(part) <= _LONGEST_INDEX else len(target) + 1
        if number < len(target) + adding:
            return number
    raise PatchError(f"there is no {part[:80]!r} to patch")
