"""The quota tree as a file: YAML in, YAML out, for import and export.

What YAML can do and a quota tree never needs (several documents, anchors, tags) is refused, so a small file stays small.
"""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from fleet.errors import MalformedInput, TooLarge

LARGEST = 1024 * 1024
_DEEPEST = 80
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read(text: str) -> dict[str, Any]:
    """The one manifest in the text. JSON is YAML too."""
    if len(text) > LARGEST:
        raise TooLarge(f"the file has {len(text)} characters, at most {LARGEST} are taken")
    try:
        _look_through(text)
        document = yaml.load(text, Loader=_Loader)  # noqa: S506  (a safe loader)
    except yaml.MarkedYAMLError as e:
        where = f" at line {e.problem_mark.line + 1}, column {e.problem_mark.column + 1}" if e.problem_mark else ""
        raise MalformedInput(f"the YAML cannot be read{where}: {e.problem or e.context}") from e
    except (yaml.YAMLError, ValueError) as e:
        raise MalformedInput("the YAML cannot be read: it holds characters or values that are not allowed") from e
    if not isinstance(document, dict):
        raise MalformedInput("the file holds no manifest: one ElasticQuotaTree is expected")
    try:
        json.dumps(document, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise MalformedInput("the file holds dates or numbers that JSON cannot carry: put them in quotes") from e
    return document


def write(manifest: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(manifest), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def _look_through(text: str) -> None:
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise MalformedInput("the YAML uses anchors: write every quota out")
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise MalformedInput(f"the YAML is nested deeper than {_DEEPEST} levels")
    if documents > 1:
        raise MalformedInput(f"the file holds {documents} documents: one ElasticQuotaTree is expected")
