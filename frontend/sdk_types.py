"""Writes ``convoy/types.py``, the types of the Python SDK, from the OpenAPI document, each schema a TypedDict.

``python -m frontend.sdk_types`` writes the file, with ``--check`` it compares only.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCUMENT, TARGET = ROOT / "docs" / "openapi.json", ROOT / "convoy" / "types.py"
ANSWERED = ("AppliedList", "Attempt", "Cluster", "EndedPod", "Event", "Explanation", "Job", "JobDetail", "Pod")
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_HEAD = '''"""What the REST API answers, as types. Written by frontend/sdk_types.py from docs/openapi.json: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''

Schema = Mapping[str, Any]


def text(document: Schema) -> str:
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    names = sorted(_reached(schemas))
    return _HEAD + "".join(_declared(name, schemas[name]) for name in names)


def _reached(schemas: Mapping[str, Schema]) -> set[str]:
    """The answered schemas and those that they refer to."""
    reached: set[str] = set()
    waiting = list(ANSWERED)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _references(schemas[name])
    return reached


def _references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield _name_of(part)
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def _name_of(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _declared(name: str, schema: Schema) -> str:
    if schema.get("type") != "object" or "properties" not in schema:
        return f"\n{name} = {_type(schema)}\n"
    required = {*schema.get("required", ())}
    lines = [f"\n\nclass {name}(TypedDict):"]
    for key, value in schema["properties"].items():
        if not key.isidentifier() or iskeyword(key):
            raise ValueError(f"{name}.{key} is no name of Python: give the field another name in its serializer")
        shown = _type(value)
        always = key in required or value.get("readOnly")
        lines.append(f"    {key}: {shown if always else f'NotRequired[{shown}]'}")
        if described := " ".join(str(value.get("description", "")).split()):
            lines.append(f'    """{described[0].upper()}{described[1:]}"""'.replace("\\", "\\\\"))
    return "\n".join(lines) + "\n"


def _type(schema: Schema) -> str:
    shown = _plain_type(schema)
    return f"{shown} | None" if schema.get("nullable") else shown


def _plain_type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name_of(schema)
    for joined in ("allOf", "oneOf", "anyOf"):
        if joined in schema:
            return " | ".join(dict.fromkeys(_type(part) for part in schema[joined]))
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'] if value is not None)}]"
    if schema.get("type") == "array":
        return f"list[{_type(schema['items'])}]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values) if values else 'Any'}]"
    return _SIMPLE.get(str(schema.get("type")), "Any")


def main() -> int:
    written = text(json.loads(DOCUMENT.read_text()))
    if "--check" not in sys.argv:
        TARGET.write_text(written)
        return 0
    if TARGET.read_text() == written:
        return 0
    print(f"{TARGET} is not what docs/openapi.json makes: run `make generate`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
