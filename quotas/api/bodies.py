"""Bodies of the quota tree's doors: JSON as everywhere, or the YAML file as it is."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from fleet.api.http.parsers import JsonBody
from fleet.errors import MalformedInput, invalid
from quotas.services import documents
from quotas.services.trees import Saving


class YamlFile(BaseParser):
    """What ``curl -T tree.yaml`` sends, as if it were the field ``yaml``."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        try:
            return {"yaml": stream.read(documents.LARGEST + 1).decode()}
        except UnicodeDecodeError as e:
            raise MalformedInput(f"the file is not UTF-8 text: byte {e.start} cannot be read") from e


PARSERS = [JsonBody, YamlFile]


def manifest(body: Mapping[str, Any]) -> dict[str, Any]:
    if "yaml" in body:
        return documents.parse_manifest(body["yaml"])
    if "manifest" in body:
        return dict(body["manifest"])
    raise invalid("manifest", "send the tree as manifest, or its file as yaml")


def saving(request: Request, body: Mapping[str, Any], now: Any) -> Saving:
    """The admin says by a header that it is one; it changes nothing but what the history calls the door."""
    source = "admin" if request.headers.get("X-Convoy-Door") == "admin" else "rest"
    return Saving(request.user.get_username(), now, body["comment"], source, body["generation"])
