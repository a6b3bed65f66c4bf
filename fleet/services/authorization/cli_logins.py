"""Sign-in of the command line through a browser: a code for the program that started it (PKCE), then a token for the code.

The browser is already signed in, by any method. This module only passes a token to the program that requested it.
"""

import base64
import hashlib
import re
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.utils.crypto import constant_time_compare

from fleet.errors import Forbidden, invalid
from fleet.models import LoginCode, Token
from fleet.services.authorization import access

LIFE = timedelta(minutes=5)
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


def make_code(user: AbstractBaseUser, *, challenge: str, name: str, life: timedelta, now: datetime) -> str:
    """``challenge`` is the SHA-256 digest of the verifier, in base64 for URLs; ``life`` is that of the token."""
    if not _CHALLENGE.fullmatch(challenge):
        raise invalid("challenge", "must be the SHA-256 digest of the verifier: 43 characters of base64 for URLs")
    most = settings.CONVOY_ACCESS.token_max_s
    if not 0 < life.total_seconds() <= most:
        raise invalid("expires_in_s", f"must be between 1 and {int(most)} (CONVOY_TOKEN_MAX_S)")
    code = secrets.token_urlsafe(32)
    about = {"challenge": challenge, "name": name, "life_s": int(life.total_seconds()), "expires_at": now + LIFE}
    LoginCode.objects.create(user_id=user.pk, digest=access.digest(code), **about)
    return code


def take(code: str, verifier: str, *, now: datetime) -> LoginCode:
    """The code, which no other caller has then or gets later; also a wrong verifier uses it up."""
    rows = LoginCode.objects.filter(digest=access.digest(code), used_at__isnull=True, expires_at__gt=now)
    row = rows.select_related("user").first()
    if row is None or rows.update(used_at=now) != 1 or not row.user.is_active:
        raise Forbidden("this code was used, has expired or never was: run convoy login again")
    digest = hashlib.sha256(verifier.encode()).digest()
    if not constant_time_compare(base64.urlsafe_b64encode(digest).decode().rstrip("="), row.challenge):
        raise Forbidden("this code is of another convoy login: run it again")
    return row


def mint(row: LoginCode, *, now: datetime) -> tuple[Token, str]:
    """The token for a code that was taken. A limit that was lowered meanwhile bounds it as every other."""
    user: Any = row.user
    return access.mint(user, row.name, life=timedelta(seconds=row.life_s), now=now, minted_by=user)
