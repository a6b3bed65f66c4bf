"""The labels by which Convoy knows again what it made in a member, and the proof that it made it.

Labels are claims: anybody who may write an object in a member can write them. `MARK` is a keyed hash over what the object
claims to be and where it stands, so it is worth nothing on another object, in another namespace or in another member.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence

JOB_UID = "convoy.dev/job-uid"
ATTEMPT = "convoy.dev/attempt"
"""The fencing token: a copy whose number is not the job's latest is removed before it is counted."""
FLEET = "convoy.dev/fleet"
"""Which fleet made it: what another fleet made in the same member is none of our business."""
MARK = "convoy.dev/mark"
POD_MARK = "convoy.dev/pod-mark"
"""A label of its own: some operators give pods the labels of their job as well."""
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "convoy"
_DOMAIN = b"convoy.dev/mark/v1"
_DIGITS = 40
"""160 bits in hexadecimal: a label value holds 63 characters."""


class Signer:
    """Makes marks with the first key, and knows those of every key."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [hmac.new(key.encode(), _DOMAIN, hashlib.sha256).digest() for key in keys]

    def sign(self, *parts: str) -> str:
        return _hash(self._keys[0], parts)

    def is_genuine(self, mark: object, *parts: str) -> bool:
        """Whether ``mark`` was made for exactly these parts; false for whatever a stranger wrote there."""
        if not isinstance(mark, str) or not mark.isascii():
            return False
        return any(hmac.compare_digest(mark, _hash(key, parts)) for key in self._keys)


def _hash(key: bytes, parts: Sequence[str]) -> str:
    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()[:_DIGITS]
