"""Tokens end with the token that minted them: a stolen one is revoked together with whatever its thief made of it.

Nothing here decides who may revoke what (`access`, `grants`, `users` do). A token has its parent from the moment it is minted;
one that was minted by a password, or on the machine, has none.
"""

from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection, transaction

from fleet.errors import Forbidden
from fleet.models import Token

_BELOW = """WITH RECURSIVE below(id) AS (
  SELECT id FROM fleet_token WHERE {roots}
  UNION SELECT child.id FROM fleet_token AS child JOIN below ON child.parent_id = below.id
) SELECT token.id FROM fleet_token AS token JOIN below ON token.id = below.id WHERE token.revoked_at IS NULL
  ORDER BY token.id LIMIT 1000"""
_OF_TOKEN = _BELOW.format(roots="id = %(of)s")
_OF_USER = _BELOW.format(roots="user_id = %(of)s OR minted_by_id = %(of)s")


def lock_minter(user: Any) -> None:
    """Inside the transaction that mints: refuse a user who was stopped, or whose password was set anew, since they came in."""
    rows = get_user_model().objects.select_for_update(no_key=True)
    if not rows.filter(pk=user.pk, password=user.password, is_active=True).exists():
        raise Forbidden(f"{user.get_username()} was signed out meanwhile: sign in again")


def lock_parent(token: Token) -> None:
    """Inside the transaction that mints with it: a revocation waits, and finds the new token; a revoked parent is refused."""
    if not Token.objects.select_for_update(no_key=True).filter(pk=token.pk, revoked_at__isnull=True).exists():
        raise Forbidden("the token was revoked")


def revoke(token_id: int, *, now: datetime) -> int:
    """The token and all that it, and they, minted; returns how many were live."""
    return _revoke(_OF_TOKEN, token_id, now)


def revoke_all(user_id: int, *, now: datetime) -> int:
    """All tokens of the user, all that the user minted for others, and what those minted; returns how many were live."""
    return _revoke(_OF_USER, user_id, now)


def audit_name(username: str, token_id: int, count: int) -> str:
    """How the audit names a revoked token, with the number of those that ended with it."""
    return f"{username}: {token_id}" + (f", and {count - 1} minted with it" if count > 1 else "")


def _revoke(query: str, root: int, now: datetime) -> int:
    """Until none is left: a token that was being minted when the others were read is visible once its parent is locked."""
    count = 0
    with transaction.atomic():
        while ids := _live(query, root):
            live = Token.objects.filter(pk__in=ids, revoked_at__isnull=True)
            list(
                live.select_for_update(no_key=True).order_by("pk").values_list("pk")
            )  # two revocations lock in one order
            count += live.update(revoked_at=now)
    return count


def _live(query: str, root: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"of": root})
        return [row[0] for row in cursor.fetchall()]
