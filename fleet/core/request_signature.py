"""Signatures of requests to S3 and what speaks like it: AWS's Signature Version 4, with the clock as an argument.

Knows nothing of how requests are sent. `url` is taken as it goes over the wire: its path is encoded already and has no query.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"


def signed_headers(
    method: str, url: str, body: bytes, headers: Mapping[str, str], credentials: Credentials, now: datetime
) -> dict[str, str]:
    """The headers with those that S3 demands; all of them are signed."""
    address, at = urlsplit(url), now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    every = {**headers, "Host": address.netloc, "X-Amz-Content-SHA256": digest, "X-Amz-Date": at}
    names = {name.lower(): " ".join(value.split()) for name, value in every.items()}
    listed = ";".join(sorted(names))
    lines = "".join(f"{name}:{names[name]}\n" for name in sorted(names))
    request = f"{method}\n{address.path or '/'}\n\n{lines}\n{listed}\n{digest}"
    scope = f"{at[:8]}/{credentials.region}/s3/aws4_request"
    text = f"{_ALGORITHM}\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    stated = f"Credential={credentials.access_key}/{scope},SignedHeaders={listed},Signature={key.hex()}"
    return {**every, "Authorization": f"{_ALGORITHM} {stated}"}
