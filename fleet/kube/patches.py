"""The patches an API server takes: JSON merge patch (RFC 7386) for every kind, JSON patch (RFC 6902), and the strategic merge
patch that kubectl and the official clients send for built-in kinds. None of them changes what it is given.
"""

from typing import Any

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
"""Lists of built-in kinds whose entries are told apart by this key."""
_SETS = ("finalizers",)
_DIRECTIVES = ("$setElementOrder/", "$retainKeys", "$patch")
_DELETE_FROM = "$deleteFromPrimitiveList/"


class PatchError(ValueError):
    """The patch cannot be read, or does not fit what it is for."""


def merge(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` merged in: null removes a key, anything but an object replaces."""
    if not isinstance(patch, dict):
        return patch
    base = target if isinstance(target, dict) else {}
    merged = {key: value for key, value in base.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if value is not None:
            merged[key] = merge(base.get(key), value)
    return merged


def strategic(target: Any, patch: Any) -> Any:
    """As `merge`, but lists whose entries have a key are merged entry by entry."""
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
            merged[field] = [each for each in merged.get(field) or [] if each not in value]
        elif value is not None and not key.startswith(_DIRECTIVES):
            merged[key] = _strategic_value(key, base.get(key), value)
    return merged


def _strategic_value(field: str, target: Any, value: Any) -> Any:
    if not isinstance(value, list):
        return strategic(target, value)
    old = target if isinstance(target, list) else []
    if field in _SETS:
        return [*old, *(each for each in value if each not in old)]
    key = _list_key(field, [*old, *value])
    return _merge_entries(old, value, key) if key else value


def _list_key(field: str, entries: list[Any]) -> str:
    if not all(isinstance(each, dict) for each in entries):
        return ""
    if field == "ports":
        return "containerPort" if any("containerPort" in each for each in entries) else "port"
    return _KEYS.get(field, "")


def _merge_entries(old: list[Any], new: list[Any], key: str) -> list[Any]:
    if any(entry.get("$patch") == "replace" for entry in new):
        return [entry for entry in new if "$patch" not in entry]
    merged = {entry.get(key): entry for entry in old}
    for entry in new:
        name = entry.get(key)
        if not isinstance(name, (str, int)):
            raise PatchError(f"an entry of a merged list has no {key}")
        if entry.get("$patch") == "delete":
            merged.pop(name, None)
        else:
            merged[name] = strategic(merged.get(name, {}), entry)
    return list(merged.values())


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902; all of the operations or none."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise PatchError("a JSON patch is a list of operations")
    for each in operations:
        target = _operate(target, each)
    return target


def _operate(target: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), _pointer(operation.get("path"))
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise PatchError(f"{kind} needs a value")
    match kind:
        case "add" | "replace" | "remove":
            return _edit(target, path, kind, operation.get("value"))
        case "test":
            if _find(target, path) != operation["value"]:
                raise PatchError(f"testing value {operation['path']} failed")
            return target
        case "move" | "copy":
            source = _pointer(operation.get("from"))
            value = _find(target, source)
            left = _edit(target, source, "remove", None) if kind == "move" else target
            return _edit(left, path, "add", value)
    raise PatchError(f"unexpected kind of operation: {kind!r}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is no path such as /metadata/labels")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _find(target: Any, path: list[str]) -> Any:
    for part in path:
        target = target[_place(target, part, adding=False)]
    return target


def _edit(target: Any, path: list[str], kind: str, value: Any) -> Any:
    if not path:
        return None if kind == "remove" else value
    place = _place(target, path[0], adding=kind == "add" and len(path) == 1)
    copy = list(target) if isinstance(target, list) else dict(target)
    if len(path) > 1:
        copy[place] = _edit(copy[place], path[1:], kind, value)
    elif kind == "remove":
        del copy[place]
    elif kind == "add" and isinstance(copy, list):
        copy.insert(place, value)
    else:
        copy[place] = value
    return copy


def _place(target: Any, part: str, *, adding: bool) -> Any:
    """The key or index ``part`` stands for, if it is there or may be added."""
    if isinstance(target, dict) and (adding or part in target):
        return part
    if isinstance(target, list):
        if adding and part == "-":
            return len(target)
        if part.isascii() and part.isdigit() and int(part) < len(target) + adding:
            return int(part)
    raise PatchError(f"there is no {part!r} to patch")
