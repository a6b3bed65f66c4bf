"""Codes of an authenticator app (TOTP, RFC 6238) beside the passwords of local users, and recovery codes.

Every attempt is counted before its code is checked, so that parallel guesses are limited too. An attempt requires the right
password, so that strangers cannot lock users out. A code is accepted once.
"""

import base64
import secrets
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

from fleet.errors import Conflict, Forbidden, invalid
from fleet.models import RecoveryCode, SecondFactor
from fleet.services.authorization import access, grants

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
class Enrolment:
    """What an app is set up with."""

    secret: str
    uri: str


def is_set(user: Any) -> bool:
    return SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=False).exists()


def is_required(user: Any) -> bool:
    """Of fleet admins, where the setting says so. Who signs in with the company's account has that provider's factors."""
    if not settings.CONVOY_ACCESS.second_factor_for_admins or grants.is_of_company(user):
        return False
    return access.is_fleet_admin(user)


def recovery_codes_left(user: Any) -> int:
    return RecoveryCode.objects.filter(user_id=user.pk, used_at__isnull=True).count()


def check(user: Any, code: str, *, now: datetime) -> Verdict:
    """Whether a user whose password was right is let in. With a right code a required enrolment is confirmed here."""
    row = SecondFactor.objects.filter(user_id=user.pk).first()
    if row is None or row.confirmed_at is None:
        if not is_required(user):
            return Verdict.NOT_NEEDED
        if row is None or not code:
            return Verdict.ENROLMENT_WANTED
    elif not code:
        return Verdict.WANTED
    verdict = _attempt(row, code, now)
    if verdict is Verdict.PASSED and row.confirmed_at is None and _set_confirmed(row, now):
        return Verdict.ENROLLED
    return verdict


def begin(user: Any) -> Enrolment:
    """A new secret, which counts once `confirm` has seen a code made with it."""
    if grants.is_of_company(user):
        raise Conflict("you sign in with an account of the company: its second factor is set up there")
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    with transaction.atomic():
        SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=True).update(secret=secret)
        row, _ = SecondFactor.objects.get_or_create(user_id=user.pk, defaults={"secret": secret})
    if row.confirmed_at is not None:
        raise Conflict("a second factor is set up: remove it first, with a code of it")
    return _enrolment(user, secret)


def pending(user: Any) -> Enrolment | None:
    """The enrolment that was begun and waits for its first code."""
    row = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=True).first()
    return _enrolment(user, row.secret) if row is not None else None


def confirm(user: Any, code: str, *, now: datetime) -> list[str]:
    """Set the second factor up; the recovery codes, which are kept as digests and shown this once."""
    row = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=True).first()
    if row is None:
        raise Conflict("no second factor is being set up: begin first")
    _require(_attempt(row, code, now))
    with transaction.atomic():
        if not _set_confirmed(row, now):
            raise Conflict("the second factor is set up already")
        return new_recovery_codes(user)


def new_recovery_codes(user: Any) -> list[str]:
    """Instead of those there were."""
    texts = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(RECOVERY_CODES)]
    codes = ["-".join(text[at : at + 4] for at in range(0, 16, 4)) for text in texts]
    with transaction.atomic():
        RecoveryCode.objects.filter(user_id=user.pk).delete()
        RecoveryCode.objects.bulk_create(RecoveryCode(user_id=user.pk, digest=access.digest(code)) for code in codes)
    return codes


def remove(user: Any, code: str, *, now: datetime) -> None:
    """One's own, with a code of it."""
    row = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=False).first()
    if row is None:
        raise Conflict("no second factor is set up")
    if is_required(user):
        raise Conflict("fleet admins need a second factor here (CONVOY_MFA_ADMINS)")
    _require(_attempt(row, code, now))
    _forget(user)


def reset(username: str) -> None:
    """A fleet admin's help for a user who lost both app and recovery codes."""
    _forget(grants.user(username))


def _enrolment(user: Any, secret: str) -> Enrolment:
    return Enrolment(secret, _totp(secret).get_provisioning_uri(user.get_username(), "Convoy"))


def _attempt(row: SecondFactor, code: str, now: datetime) -> Verdict:
    mine = SecondFactor.objects.filter(pk=row.pk)
    mine.filter(locked_until__lte=now).update(locked_until=None, attempts=0)
    if not mine.filter(locked_until__isnull=True, attempts__lt=ATTEMPTS).update(attempts=F("attempts") + 1):
        mine.filter(locked_until__isnull=True).update(locked_until=now + LOCKED)
        return Verdict.LOCKED
    text = code.strip().replace(" ", "").lower()
    if not (_accept_totp(row, text, now) if text.isdecimal() else _accept_recovery(row, text, now)):
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


def _accept_recovery(row: SecondFactor, code: str, now: datetime) -> bool:
    known = RecoveryCode.objects.filter(user_id=row.user_id, digest=access.digest(code), used_at__isnull=True)
    return row.confirmed_at is not None and known.update(used_at=now) == 1


def _set_confirmed(row: SecondFactor, now: datetime) -> bool:
    with transaction.atomic():
        is_new = SecondFactor.objects.filter(pk=row.pk, confirmed_at__isnull=True).update(confirmed_at=now) == 1
        if is_new:
            grants.noted_user("set-second-factor", row.user.get_username())
    return is_new


def _forget(user: Any) -> None:
    with transaction.atomic():
        removed, _ = SecondFactor.objects.filter(user_id=user.pk).delete()
        RecoveryCode.objects.filter(user_id=user.pk).delete()
        if removed:
            grants.noted_user("remove-second-factor", user.get_username())


def _require(verdict: Verdict) -> None:
    if verdict is Verdict.LOCKED:
        raise Forbidden(f"too many wrong codes: wait {int(LOCKED.total_seconds() // 60)} minutes")
    if verdict is not Verdict.PASSED:
        raise invalid("code", "is not the one that the app shows now, or was used: wait for the next one")


def _totp(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), 6, SHA1(), STEP_S)  # noqa: S303 - what authenticator apps speak
