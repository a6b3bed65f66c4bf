"""An authenticator made of Python: it makes and uses passkeys as a browser with a security key does, and lies if asked to."""

import json
import os
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import sha256, websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData

_PRESENT, _HAS_KEY = AuthenticatorData.FLAG.USER_PRESENT, AuthenticatorData.FLAG.ATTESTED


class Authenticator:
    def __init__(self, origin: str = "http://localhost", *, counts: bool = True) -> None:
        self.origin, self.counter, self._counts = origin, 0, counts
        self.id = os.urandom(32)
        self._key = ec.generate_private_key(ec.SECP256R1())

    def create(self, asked: dict[str, Any]) -> dict[str, str]:
        """The answer to a browser's ``navigator.credentials.create``."""
        public = ES256.from_cryptography_key(self._key.public_key())  # type: ignore[no-untyped-call]  # fido2 has none there
        credential = AttestedCredentialData.create(bytes(16), self.id, public)
        data = AuthenticatorData.create(
            sha256(asked["rp"]["id"].encode()), _PRESENT | _HAS_KEY, self._count(), credential
        )
        made = AttestationObject.create("none", data, {})
        client = self._client("webauthn.create", asked["challenge"])
        return {
            "id": websafe_encode(self.id),
            "client_data": websafe_encode(client),
            "attestation": websafe_encode(bytes(made)),
        }

    def get(self, asked: dict[str, Any], **lies: Any) -> dict[str, str]:
        """The answer to ``navigator.credentials.get``; ``lies`` go instead of what would be signed."""
        host, flags = lies.get("host", asked["rpId"]), lies.get("flags", _PRESENT)
        data = AuthenticatorData.create(sha256(host.encode()), flags, self._count())
        client = self._client(lies.get("type", "webauthn.get"), lies.get("challenge", asked["challenge"]))
        signature = self._key.sign(bytes(data) + sha256(client), ec.ECDSA(SHA256()))
        return {
            "id": websafe_encode(self.id),
            "client_data": websafe_encode(client),
            "authenticator_data": websafe_encode(bytes(data)),
            "signature": websafe_encode(signature),
        }

    def _client(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _count(self) -> int:
        self.counter += self._counts
        return self.counter
