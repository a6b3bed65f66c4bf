"""A webhook of the operator, and the signature by which its receiver knows who calls it and when. Pure."""

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where to; empty: nowhere."""

    url: str = ""
    secret: str = ""

    def faults(self, name: str) -> list[str]:
        """One sentence for each value that makes no sense."""
        if self.url and urlsplit(self.url).scheme not in ("http", "https"):
            return [f"{name}={self.url!r} is no http or https address"]
        if self.url and not self.secret:
            return [f"{name} is set and {name}_SECRET is not: set a secret, by which the receiver knows who calls"]
        return []


def signature(secret: str, at: str, body: bytes) -> str:
    """HMAC-SHA256, in hexadecimal, of the time, a full stop and the body."""
    return hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
