"""Bytes from a person → plain manifests, or a refusal that says what to mend. Nothing here touches the database.

YAML is a superset of JSON, so one reader serves both. Timestamps stay text (a manifest has no other use for them), and what
JSON cannot carry (infinities, dates, keys that are no text, alias bombs) is refused here, once, for every door.
"""

import json
import math
import re
from typing import Any

import yaml

from fleet.errors import FieldFault, MalformedInput, TooLarge

MAX_BYTES = 3 * 1024 * 1024
"""What a Kubernetes API server takes in one request body."""
MAX_VALUES = 200_000
"""Values in all documents together, aliases counted as often as they are used."""
MAX_DEPTH = 100

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Manifests(_Loader):  # type: ignore[misc]
    """The safe loader without timestamps: ``2026-01-01`` stays what was written."""


_Manifests.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def parse(body: bytes) -> list[dict[str, Any]]:
    """Every manifest in one or many documents; ``kind: List`` is unfolded. Empty documents are skipped."""
    if len(body) > MAX_BYTES:
        raise TooLarge(f"the body has {len(body)} bytes, at most {MAX_BYTES} are taken: send fewer documents at once")
    found: list[dict[str, Any]] = []
    budget = [MAX_VALUES]
    for i, document in enumerate(_documents(body)):
        if document is None:
            continue
        _check(document, f"document {i + 1}", budget, 0)
        found += _unfold(document, f"document {i + 1}")
    if not found:
        raise MalformedInput("the body holds no manifest: send YAML or JSON with apiVersion, kind and metadata")
    return found


def _documents(body: bytes) -> list[Any]:
    if (found := _as_json(body)) is not None:
        return [found]
    try:
        return list(yaml.load_all(body.decode("utf-8"), Loader=_Manifests))  # noqa: S506  (derived from the safe loader)
    except UnicodeDecodeError as e:
        raise MalformedInput(f"the body is not UTF-8 text: byte {e.start} cannot be read") from e
    except yaml.MarkedYAMLError as e:
        where = f" at line {e.problem_mark.line + 1}, column {e.problem_mark.column + 1}" if e.problem_mark else ""
        raise MalformedInput(f"the YAML cannot be read{where}: {e.problem or e.context}") from e
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise MalformedInput(f"the YAML cannot be read: {re.sub(r'[^ -~]', '?', str(e))[:200]}") from e


def _as_json(body: bytes) -> Any:
    """Programs send JSON, which the YAML reader takes fifty times as long for; it sees to escapes and to what is no JSON."""
    if not body.startswith(b"{") or b"\\u" in body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _unfold(document: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        raise MalformedInput(f"{where} is not an object with apiVersion, kind and metadata")
    if document.get("kind") != "List":
        return [document]
    items = document.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedInput(f"{where}: items of a List must be a list of manifests")
    return items


def _check(value: Any, path: str, budget: list[int], depth: int) -> None:
    """Refuses what JSON cannot carry; visits every value, so an alias bomb runs out of budget."""
    budget[0] -= 1
    if budget[0] < 0:
        raise TooLarge(f"the documents hold more than {MAX_VALUES} values")
    if depth > MAX_DEPTH:
        raise MalformedInput(f"{path} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise _fault(path, f"has the key {key!r}, which is no text: put it in quotes")
            _check(inner, f"{path}.{key}" if depth else key, budget, depth + 1)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _check(inner, f"{path}[{i}]", budget, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _fault(path, "is not a finite number: no quantity is that large")
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise _fault(path, "is larger than 64 bits hold")
    elif value is not None and not isinstance(value, (str, int, float, bool)):
        raise _fault(path, f"has a value of type {type(value).__name__}, which JSON cannot carry")
    elif isinstance(value, str) and "\x00" in value:
        raise _fault(path, "contains a zero byte")


def _fault(path: str, detail: str) -> MalformedInput:
    return MalformedInput(f"{path} {detail}", (FieldFault(path, detail),))
