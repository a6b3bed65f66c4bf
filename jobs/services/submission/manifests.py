"""Bytes from a person → plain manifests, or a refusal that says what to mend. Nothing here touches the database.

YAML is a superset of JSON, so both are taken, by the reader all doors share; what it lets pass and a manifest cannot carry
(keys that are no text, numbers beyond 64 bits) is refused here, once, for every door.
"""

import re
from typing import Any

from fleet.errors import FieldFault, MalformedInput, TooLarge
from fleet.kube.requests import reader
from fleet.kube.requests.reader import Excessive, Unreadable

MAX_BYTES = 3 * 1024 * 1024
"""What a Kubernetes API server takes in one request body."""


def parse(body: bytes) -> list[dict[str, Any]]:
    """Every manifest in one or many documents; ``kind: List`` is unfolded. Empty documents are skipped."""
    if len(body) > MAX_BYTES:
        raise TooLarge(f"the body has {len(body)} bytes, at most {MAX_BYTES} are taken: send fewer documents at once")
    documents: list[dict[str, Any]] = []
    for i, document in enumerate(_documents(body)):
        if document is None:
            continue
        _check(document, f"document {i + 1}", 0)
        documents += _unfold(document, f"document {i + 1}")
    if not documents:
        raise MalformedInput("the body holds no manifest: send YAML or JSON with apiVersion, kind and metadata")
    return documents


def _documents(body: bytes) -> list[Any]:
    try:
        if body.startswith(b"{") and (as_json := _as_json(body)) is not None:
            return [as_json]
        return reader.read_yaml(body, keys=_as_it_is, aliases=True)
    except Excessive as e:
        raise TooLarge(f"the body cannot be read: {e}") from e
    except Unreadable as e:
        where = f" at line {e.line}, column {e.column}" if e.line else ""
        raise MalformedInput(f"the YAML cannot be read{where}: {re.sub(r'[^ -~]', '?', e.problem)[:200]}") from e


def _as_json(body: bytes) -> Any:
    """Programs send JSON, which the YAML reader takes fifty times as long for; it sees to what begins like JSON and is not."""
    try:
        return reader.read_json(body)
    except Excessive:
        raise
    except Unreadable:
        return None


def _as_it_is(key: Any) -> Any:
    """Keys that are no text are refused below, with the path they stand at."""
    return key


def _unfold(document: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        raise MalformedInput(f"{where} is not an object with apiVersion, kind and metadata")
    if document.get("kind") != "List":
        return [document]
    items = document.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedInput(f"{where}: items of a List must be a list of manifests")
    return items


def _check(value: Any, path: str, depth: int) -> None:
    """Refuses what a manifest cannot carry."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise _fault(path, f"has the key {key!r}, which is no text: put it in quotes")
            if type(inner) is not str:
                _check(inner, f"{path}.{key}" if depth else key, depth + 1)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _check(inner, f"{path}[{i}]", depth + 1)
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise _fault(path, "is larger than 64 bits hold")


def _fault(path: str, detail: str) -> MalformedInput:
    return MalformedInput(f"{path} {detail}", (FieldFault(path, detail),))
