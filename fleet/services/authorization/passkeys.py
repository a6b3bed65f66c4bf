"""Passkeys (WebAuthn) as second factors of local users: what a browser is asked, and whether its answer is right.

The protocol is the library's (Yubico's `fido2`). A challenge is a token that only this product can make, for one user and one
purpose, so that nothing is stored until an answer comes; it is accepted once. Whether a second factor is needed, and what else
stands in for one, is the question of `second_factors`.
"""

import ipaddress
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.fernet import InvalidToken
from django.db import IntegrityError, transaction
from django.db.models import Q
from fido2.cose import UnsupportedKey
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticatorData,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
)

from fleet.errors import Conflict, invalid
from fleet.models import Passkey, SpentState
from fleet.models.encrypted import cipher
from fleet.services.authorization import access

LIFE = timedelta(minutes=5)
MOST = 20
"""Of one user."""
REGISTER, SIGN_IN = "register", "sign in"
_MALFORMED = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, AssertionError, RecursionError, NotImplementedError,
    OverflowError, struct.error, UnsupportedAlgorithm,
)  # fmt: skip
"""What the library raises about an answer that is none of WebAuthn's, besides about one that is wrong."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the browser is, as the address bar shows it."""

    origin: str

    @property
    def host(self) -> str:
        host = self.origin.partition("://")[2]
        return host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host

    @property
    def fault(self) -> str:
        """Why browsers keep no passkeys for it."""
        try:
            ipaddress.ip_address(self.host.strip("[]"))
        except ValueError:
            is_secure = self.origin.startswith("https://") or self.host == "localhost"
            return "" if is_secure else "passkeys need HTTPS, or the name localhost"
        return f"passkeys need a host name: open Convoy by one instead of {self.host}"


def are_set(user: Any) -> bool:
    return Passkey.objects.filter(user_id=user.pk).exists()


def ask_new(user: Any, site: Site, *, now: datetime) -> dict[str, Any]:
    """What a browser makes a new passkey with; those that are known are left out."""
    if site.fault:
        raise Conflict(site.fault)
    entity = PublicKeyCredentialUserEntity(
        name=user.get_username(), id=str(user.pk).encode(), display_name=user.get_username()
    )
    options, _ = _server(site).register_begin(
        entity, _credentials(user, site), challenge=_challenge(user, REGISTER, now)
    )
    return dict(options.public_key)


def ask(user: Any, site: Site, *, now: datetime) -> dict[str, Any] | None:
    """What a browser signs with one of the user's passkeys; None where there is none for this address."""
    known = [] if site.fault else _credentials(user, site)
    if not known:
        return None
    options, _ = _server(site).authenticate_begin(known, challenge=_challenge(user, SIGN_IN, now))
    return dict(options.public_key)


def add(user: Any, site: Site, answer: Mapping[str, str], name: str, *, now: datetime) -> Passkey:
    response = {"clientDataJSON": answer["client_data"], "attestationObject": answer["attestation"]}
    try:
        state = _state(user, REGISTER, answer, now)
        data = _server(site).register_complete(state, {"id": answer["id"], "rawId": answer["id"], "response": response})
        credential = data.credential_data
        if (
            credential is None
            or isinstance(credential.public_key, UnsupportedKey)
            or websafe_encode(credential.credential_id) != answer["id"]
        ):
            raise ValueError("no key of a known kind, or of another id")
    except _MALFORMED as e:
        raise invalid("passkey", "is not what was asked for, or came too late: begin again") from e
    if Passkey.objects.filter(user_id=user.pk).count() >= MOST:
        raise Conflict(f"{MOST} passkeys are the most: remove one first")
    row = Passkey(user_id=user.pk, name=name, site=site.host, created_at=now, sign_count=data.counter)
    row.credential, row.digest = bytes(credential), access.digest(websafe_encode(credential.credential_id))
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as e:
        raise Conflict("this passkey is set up already") from e
    return row


def accepts(user: Any, site: Site, answer: Mapping[str, str], *, now: datetime) -> bool:
    """Whether one of the user's passkeys has signed what this user was asked, for the first time."""
    response = {
        "clientDataJSON": answer["client_data"],
        "authenticatorData": answer["authenticator_data"],
        "signature": answer["signature"],
    }
    try:
        state = _state(user, SIGN_IN, answer, now)
        asked = {"id": answer["id"], "rawId": answer["id"], "response": response}
        used = _server(site).authenticate_complete(state, _credentials(user, site), asked)
        count = AuthenticatorData(websafe_decode(answer["authenticator_data"])).counter
    except _MALFORMED:
        return False
    mine = Passkey.objects.filter(user_id=user.pk, digest=access.digest(websafe_encode(used.credential_id)))
    grown = mine.filter(Q(sign_count__lt=count) | Q(sign_count=0)) if count else mine.filter(sign_count=0)
    return grown.update(sign_count=count, last_used_at=now) == 1


def _server(site: Site) -> Fido2Server:
    entity = PublicKeyCredentialRpEntity(name="Convoy", id=site.host)
    return Fido2Server(entity, verify_origin=lambda origin: origin == site.origin)


def _credentials(user: Any, site: Site) -> list[AttestedCredentialData]:
    rows = Passkey.objects.filter(user_id=user.pk, site=site.host).order_by("pk")
    return [AttestedCredentialData(bytes(each)) for each in rows.values_list("credential", flat=True)]


def _challenge(user: Any, purpose: str, now: datetime) -> bytes:
    return cipher().encrypt_at_time(json.dumps([user.pk, purpose]).encode(), int(now.timestamp()))


def _state(user: Any, purpose: str, answer: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """For the library, of the challenge that is in the answer; ValueError for one that is not this user's, or was used."""
    challenge = websafe_decode(json.loads(websafe_decode(answer["client_data"]))["challenge"])
    try:
        asked = cipher().decrypt_at_time(challenge, int(LIFE.total_seconds()), int(now.timestamp()))
    except InvalidToken as e:
        raise ValueError("the challenge is not of this product, or too old") from e
    if json.loads(asked) != [user.pk, purpose]:
        raise ValueError("the challenge is for another user or purpose")
    try:
        with transaction.atomic():
            SpentState.objects.create(digest=access.digest(challenge.decode()), expires_at=now + LIFE)
    except IntegrityError as e:
        raise ValueError("the challenge was answered before") from e
    return {"challenge": websafe_encode(challenge), "user_verification": None}
