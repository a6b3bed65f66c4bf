"""JSON bodies of the REST API, by the reader all doors share: bounded before they are parsed."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import JSONParser

from fleet.errors import MalformedInput, TooLarge
from fleet.kube.requests import reader
from fleet.kube.requests.reader import Excessive, Unreadable

MAX_BYTES = 3 * 1024 * 1024


class JsonBody(JSONParser):
    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise TooLarge(f"the body has more than {MAX_BYTES} bytes")
        try:
            return reader.read_json(raw)
        except Excessive as e:
            raise TooLarge(f"the JSON cannot be read: {e}") from e
        except Unreadable as e:
            raise MalformedInput(f"the JSON cannot be read: {e}") from e
