"""Handles unknown and duplicate fields by ``fieldValidation`` (Ignore, Warn or Strict), and encodes warnings as headers.

Values are validated elsewhere, and a client cannot switch that off.
"""

from collections.abc import Iterable

from fleet.kube.requests.bodies import Body
from fleet.kube.requests.options import IGNORE, STRICT
from fleet.kube.requests.status import KubeError
from fleet.kube.resources import Resource
from fleet.kube.schema import structural
from fleet.kube.schema.schemas import Schema

_LONGEST, _MOST = 240, 32


def checked(body: Body, schema: Schema, resource: Resource, how: str) -> list[str]:
    """The warnings about unknown and duplicate fields. Raises BadRequest instead if the client requested Strict."""
    if how == IGNORE:
        return []
    faults = [f'unknown field "{path}"' for path in structural.unknown_fields(schema, body.value)]
    faults += [f'duplicate field "{path}"' for path in body.duplicates]
    if faults and how == STRICT:
        raise refusal(resource, faults)
    return faults


def refusal(resource: Resource, faults: Iterable[str]) -> KubeError:
    kind = resource.kind
    why = f'{kind} in version "{resource.version}" cannot be handled as a {kind}'
    return KubeError(400, f"{why}: strict decoding error: {', '.join(faults)}")


def headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """A ``Warning`` header (code 299) for each warning, limited in number and length."""
    return [(b"warning", _quoted(each)) for each in list(dict.fromkeys(warnings))[:_MOST]]


def _quoted(text: str) -> bytes:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)[:_LONGEST]
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("ascii", "replace")
