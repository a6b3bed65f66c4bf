"""Users made, disabled, enabled and given passwords: a fleet admin's work. A user is never deleted: the audit names them.

Roles are in `grants`, where the rule of the last fleet admin is kept for both.
"""

from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from fleet.errors import Conflict, FieldFault, InvalidInput
from fleet.services.authorization import grants


def create(username: str, password: str = "") -> Any:
    """A user without a role. Without a password they sign in by a link, or use tokens."""
    user = get_user_model()(username=username)
    _check("username", lambda: user.clean_fields(exclude=["password"]))
    if password:
        _check("password", lambda: validate_password(password, user))
        user.set_password(password)
    else:
        user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            grants.noted_user("create", username)
    except IntegrityError as e:
        raise Conflict(f"there is a user {username} already") from e
    return user


def disable(username: str) -> Any:
    """Ends every way in at once: sessions, tokens and links are those of active users only."""
    with transaction.atomic():
        user = grants.user(username)
        grants.require_another_admin(user)
        if get_user_model().objects.filter(pk=user.pk, is_active=True).update(is_active=False):
            grants.noted_user("disable", username)
    return grants.user(username)


def enable(username: str) -> Any:
    user = grants.user(username)
    with transaction.atomic():
        if get_user_model().objects.filter(pk=user.pk, is_active=False).update(is_active=True):
            grants.noted_user("enable", username)
    return grants.user(username)


def set_password(username: str, password: str, *, now: datetime) -> None:
    """End the user's sessions, and what `grants.revoke_all` ends: a password is set anew when the old one is not trusted."""
    user = grants.user(username)
    if grants.is_of_company(user):
        raise Conflict(f"{username} signs in with an account of the company and has no password here")
    _check("password", lambda: validate_password(password, user))
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        grants.revoke_all(username, now=now)
        grants.noted_user("set-password", username)


def _check(field: str, check: Any) -> None:
    try:
        check()
    except ValidationError as e:
        faults = tuple(FieldFault(field, message) for message in e.messages)
        raise InvalidInput("; ".join(f"{fault.field}: {fault.detail}" for fault in faults), faults) from e
