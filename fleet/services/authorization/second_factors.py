"""Codes of an authenticator app (TOTP, RFC 6238) and passkeys beside the passwords of local users, and recovery codes for both.

Every attempt is counted before its code is checked, so that parallel guesses are limited too. An attempt requires the right
password, so that strangers cannot lock users out. A code is accepted once. What a passkey signs, and the 80 bits of a recovery
code, cannot be guessed: those of a user without an app are not counted.
"""

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor import InvalidToken
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.db import transaction
from django.db.models import F

from fleet.errors import Conflict, Forbidden, NotFound, invalid
from fleet.models import Passkey, RecoveryCode, SecondFactor
from fleet.services.authorization import access, grants, passkeys
from fleet.services.authorization.passkeys import Site

STEP_S = 30
ATTEMPTS = 10
LOCKED = timedelta(minutes=15)
RECOVERY_CODES = 10
_DRIFT = (0, -1, 1)
"""Steps by which the clock of a phone may be off."""


class Verdict(Enum):
    NOT_NEEDED = "not needed"
    PASSED = "passed"
    ENROLLED = "passed, and set up by it"
    WANTED = "second factor wanted"
    ENROLMENT_WANTED = "second factor must be set up"
    WRONG = "wrong second factor"
    LOCKED = "second factor locked"

    @property
    def lets_in(self) -> bool:
        return self in (Verdict.NOT_NEEDED, Verdict.PASSED, Verdict.ENROLLED)


@dataclass(frozen=True, slots=True)
class Proof:
    """What is sent as a second factor: a code, or what a passkey has signed at this address."""

    code: str = ""
    passkey: Mapping[str, str] | None = None
    site: Site = Site("")

    @property
    def is_empty(self) -> bool:
        return not self.code and self.passkey is None


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an app is set up with."""

    secret: str
    uri: str


def is_set(user: Any) -> bool:
    return has_app(user) or passkeys.are_set(user)


def has_app(user: Any) -> bool:
    return SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=False).exists()


def is_required(user: Any) -> bool:
    """Of fleet admins, where the setting says so. Who signs in with the company's account has that provider's factors."""
    if not settings.CONVOY_ACCESS.second_factor_for_admins or grants.is_of_company(user):
        return False
    return access.is_fleet_admin(user)


def recovery_codes_left(user: Any) -> int:
    return RecoveryCode.objects.filter(user_id=user.pk, used_at__isnull=True).count()


def check(user: Any, proof: Proof, *, now: datetime) -> Verdict:
    """Whether a user whose password was right is let in. With a right code a required enrolment is confirmed here."""
    row = SecondFactor.objects.filter(user_id=user.pk).first()
    is_confirmed = row is not None and row.confirmed_at is not None
    if is_confirmed or passkeys.are_set(user):
        return Verdict.WANTED if proof.is_empty else _verdict(user, row if is_confirmed else None, proof, now)
    if not is_required(user):
        return Verdict.NOT_NEEDED
    if row is None or not proof.code:
        return Verdict.ENROLMENT_WANTED
    verdict = _attempt(row, proof.code, now)
    return Verdict.ENROLLED if verdict is Verdict.PASSED and _set_confirmed(row, now) else verdict


def _verdict(user: Any, row: SecondFactor | None, proof: Proof, now: datetime) -> Verdict:
    if proof.passkey is not None:
        is_right = passkeys.accepts(user, proof.site, proof.passkey, now=now)
    elif row is not None:
        return _attempt(row, proof.code, now)
    else:
        is_right = _accept_recovery(user.pk, _plain(proof.code), now)
    return Verdict.PASSED if is_right else Verdict.WRONG


def begin(user: Any) -> Enrolment:
    """A new secret, which counts once `confirm` has seen a code made with it."""
    if grants.is_of_company(user):
        raise Conflict("you sign in with an account of the company: its second factor is set up there")
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    with transaction.atomic():
        SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=True).update(secret=secret)
        row, _ = SecondFactor.objects.get_or_create(user_id=user.pk, defaults={"secret": secret})
    if row.confirmed_at is not None:
        raise Conflict("an authenticator app is set up: remove it first, with a code of it")
    return _enrolment(user, secret)


def pending(user: Any) -> Enrolment | None:
    """The enrolment that was begun and waits for its first code."""
    row = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=True).first()
    return _enrolment(user, row.secret) if row is not None else None


def confirm(user: Any, code: str, *, now: datetime, proof: Proof | None = None) -> list[str]:
    """Set the app up; the recovery codes, which are kept as digests and shown this once.

    A user who has passkeys proves one first, so that a session alone adds no app, and keeps their recovery codes.
    """
    row = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=True).first()
    if row is None:
        raise Conflict("no authenticator app is being set up: begin first")
    is_first = not passkeys.are_set(user)
    if not is_first:
        _require_proof(user, proof or Proof(), now)
    _require(_attempt(row, code, now))
    with transaction.atomic():
        if not _set_confirmed(row, now):
            raise Conflict("the authenticator app is set up already")
        return new_recovery_codes(user) if is_first else []


def new_recovery_codes(user: Any) -> list[str]:
    """Instead of those there were."""
    texts = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(RECOVERY_CODES)]
    codes = ["-".join(text[at : at + 4] for at in range(0, 16, 4)) for text in texts]
    with transaction.atomic():
        RecoveryCode.objects.filter(user_id=user.pk).delete()
        RecoveryCode.objects.bulk_create(RecoveryCode(user_id=user.pk, digest=access.digest(code)) for code in codes)
    return codes


def remove(user: Any, code: str, *, now: datetime) -> None:
    """One's own authenticator app, with a code of it."""
    row = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=False).first()
    if row is None:
        raise Conflict("no authenticator app is set up")
    _require_another(user, passkeys.are_set(user))
    _require(_attempt(row, code, now))
    with transaction.atomic():
        SecondFactor.objects.filter(pk=row.pk).delete()
        _removed(user)


def add_passkey(
    user: Any, site: Site, answer: Mapping[str, str], name: str, proof: Proof, *, now: datetime
) -> list[str]:
    """With a proof where a second factor is set up, so that a session alone adds none; recovery codes with the first factor."""
    if grants.is_of_company(user):
        raise Conflict("you sign in with an account of the company: its second factor is set up there")
    is_first = not is_set(user)
    if not is_first:
        _require_proof(user, proof, now)
    with transaction.atomic():
        passkeys.add(user, site, answer, name, now=now)
        grants.noted_user("add-passkey", user.get_username())
        return new_recovery_codes(user) if is_first else []


def remove_passkey(user: Any, passkey_id: int, proof: Proof, *, now: datetime) -> None:
    mine = Passkey.objects.filter(user_id=user.pk)
    if not mine.filter(pk=passkey_id).exists():
        raise NotFound(f"you have no passkey {passkey_id}")
    _require_another(user, has_app(user) or mine.exclude(pk=passkey_id).exists())
    _require_proof(user, proof, now)
    with transaction.atomic():
        if mine.filter(pk=passkey_id).delete()[0]:
            _removed(user, "remove-passkey")


def reset(username: str) -> None:
    """A fleet admin's help for a user who lost passkeys, app and recovery codes."""
    user = grants.user(username)
    with transaction.atomic():
        removed = SecondFactor.objects.filter(user_id=user.pk).delete()[0]
        removed += Passkey.objects.filter(user_id=user.pk).delete()[0]
        RecoveryCode.objects.filter(user_id=user.pk).delete()
        if removed:
            grants.noted_user("remove-second-factor", user.get_username())


def _removed(user: Any, verb: str = "remove-second-factor") -> None:
    """Recovery codes stand in for another factor, and are worth nothing without one."""
    if not is_set(user):
        RecoveryCode.objects.filter(user_id=user.pk).delete()
    grants.noted_user(verb, user.get_username())


def _require_another(user: Any, has_another: bool) -> None:
    if is_required(user) and not has_another:
        raise Conflict("fleet admins need a second factor here (CONVOY_MFA_ADMINS)")


def _require_proof(user: Any, proof: Proof, now: datetime) -> None:
    verdict = check(user, proof, now=now)
    if verdict is Verdict.WANTED:
        raise invalid("passkey", "is needed, or a code of what is set up, to change your second factor")
    _require(verdict)


def _enrolment(user: Any, secret: str) -> Enrolment:
    return Enrolment(secret, _totp(secret).get_provisioning_uri(user.get_username(), "Convoy"))


def _attempt(row: SecondFactor, code: str, now: datetime) -> Verdict:
    mine = SecondFactor.objects.filter(pk=row.pk)
    mine.filter(locked_until__lte=now).update(locked_until=None, attempts=0)
    if not mine.filter(locked_until__isnull=True, attempts__lt=ATTEMPTS).update(attempts=F("attempts") + 1):
        mine.filter(locked_until__isnull=True).update(locked_until=now + LOCKED)
        return Verdict.LOCKED
    text = _plain(code)
    if not (_accept_totp(row, text, now) if text.isdecimal() else _may_recover(row, text, now)):
        return Verdict.WRONG
    mine.update(attempts=0)
    return Verdict.PASSED


def _accept_totp(row: SecondFactor, code: str, now: datetime) -> bool:
    """Once: of two with the same code the conditional update lets one pass."""
    if not code.isascii():
        return False
    totp, this_step = _totp(row.secret), int(now.timestamp()) // STEP_S
    for step in (this_step + drift for drift in _DRIFT):
        try:
            totp.verify(code.encode(), step * STEP_S)
        except InvalidToken:
            continue
        return SecondFactor.objects.filter(pk=row.pk, last_step__lt=step).update(last_step=step) == 1
    return False


def _plain(code: str) -> str:
    return code.strip().replace(" ", "").lower()


def _may_recover(row: SecondFactor, code: str, now: datetime) -> bool:
    return row.confirmed_at is not None and _accept_recovery(row.user_id, code, now)


def _accept_recovery(user_id: int, code: str, now: datetime) -> bool:
    known = RecoveryCode.objects.filter(user_id=user_id, digest=access.digest(code), used_at__isnull=True)
    return known.update(used_at=now) == 1


def _set_confirmed(row: SecondFactor, now: datetime) -> bool:
    with transaction.atomic():
        is_new = SecondFactor.objects.filter(pk=row.pk, confirmed_at__isnull=True).update(confirmed_at=now) == 1
        if is_new:
            grants.noted_user("set-second-factor", row.user.get_username())
    return is_new


def _require(verdict: Verdict) -> None:
    if verdict is Verdict.LOCKED:
        raise Forbidden(f"too many wrong codes: wait {int(LOCKED.total_seconds() // 60)} minutes")
    if verdict is not Verdict.PASSED:
        raise invalid("code", "is not the one that the app shows now, or was used: wait for the next one")


def _totp(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), 6, SHA1(), STEP_S)  # noqa: S303 - what authenticator apps speak
