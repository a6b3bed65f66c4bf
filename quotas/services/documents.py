"""The quota tree as a file: YAML in, YAML out, for import and export.

What YAML can do and a quota tree never needs (several documents, anchors, tags) is refused, so a small file stays small.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from fleet.errors import MalformedInput, TooLarge
from fleet.kube.requests import reader
from fleet.kube.requests.reader import Excessive, Unreadable

LARGEST = 1024 * 1024
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def parse_manifest(text: str) -> dict[str, Any]:
    """The one manifest in the text. JSON is YAML too."""
    if len(text) > LARGEST:
        raise TooLarge(f"the file has {len(text)} characters, at most {LARGEST} are taken")
    try:
        documents = reader.read_yaml(text)
    except Excessive as e:
        raise TooLarge(f"the YAML cannot be read: {e}") from e
    except Unreadable as e:
        where = f" at line {e.line}, column {e.column}" if e.line else ""
        raise MalformedInput(f"the YAML cannot be read{where}: {e.problem}") from e
    if len(documents) > 1:
        raise MalformedInput(f"the file holds {len(documents)} documents: one ElasticQuotaTree is expected")
    if not documents or not isinstance(documents[0], dict):
        raise MalformedInput("the file holds no manifest: one ElasticQuotaTree is expected")
    document: dict[str, Any] = documents[0]
    return document


def write(manifest: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(manifest), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
