"""The hash chain over the audit: each line's digest covers the line and the digest before it.

Keyed, so that the database alone is not enough to write another history: who changes, removes or puts in a line would have to
know the key of this installation. Knows lines as values; knows no database and no clock.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

_DOMAIN = b"convoy.dev/audit/v1"


class Chain:
    """Makes digests with the first key, and knows those of every key."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [hmac.new(key.encode(), _DOMAIN, hashlib.sha256).digest() for key in keys]

    def link(self, previous: str, line: Mapping[str, Any]) -> str:
        """The digest of a line that follows the one with the digest ``previous``."""
        return _hash(self._keys[0], previous, line)

    def is_link(self, digest: str, previous: str, line: Mapping[str, Any]) -> bool:
        return any(hmac.compare_digest(digest, _hash(key, previous, line)) for key in self._keys)


def _hash(key: bytes, previous: str, line: Mapping[str, Any]) -> str:
    text = json.dumps([previous, line], sort_keys=True, separators=(",", ":"), default=str)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
