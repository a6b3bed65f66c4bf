"""Raw manifests as a request body. Reads no more than is taken, and never decides what is in it."""

from collections.abc import Mapping
from typing import IO, Any

from django.http import HttpRequest
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser

from fleet.errors import TooLarge
from jobs.services.submission.manifests import MAX_BYTES

_DRAINED = 32 * 1024 * 1024
"""A refused body is still read up to here, so that its sender hears the answer and not a reset connection."""
_CHUNK = 64 * 1024


class Manifests(BaseParser):
    """YAML or JSON, left as bytes for `jobs.services.submission.manifests`."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        meta = (parser_context or {})["request"].META
        return read_body(stream, int(meta.get("CONTENT_LENGTH") or 0))


class ManifestsAsText(Manifests):
    media_type = "text/yaml"


class ManifestsAsX(Manifests):
    media_type = "application/x-yaml"


class ManifestsAsJson(Manifests):
    media_type = "application/json"


PARSERS = [Manifests, ManifestsAsText, ManifestsAsX, ManifestsAsJson]


def read_body(stream: IO[bytes], length: int) -> bytes:
    if length <= MAX_BYTES:
        return stream.read(length)
    left = min(length, _DRAINED)
    while left > 0 and (chunk := stream.read(min(left, _CHUNK))):
        left -= len(chunk)
    raise TooLarge(f"the body has {length} bytes, at most {MAX_BYTES} (3 MiB) are taken: send fewer documents at once")


def refuse_forms(request: HttpRequest) -> None:
    """What ``curl --data`` sends unasked; the way out is named."""
    kind = request.META.get("CONTENT_TYPE", "")
    if kind.partition(";")[0] not in {parser.media_type for parser in PARSERS}:
        raise UnsupportedMediaType(kind[:80], detail="send manifests with Content-Type: application/yaml")
