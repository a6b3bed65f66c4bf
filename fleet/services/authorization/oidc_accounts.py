"""Users who sign in with an account of the company's OpenID Connect provider: which user an account is, and which roles it has.

An account is known by issuer and subject. A user of its name who is not tied to it is another one, and is never taken over.
Where groups are mapped, they alone decide the roles: at every sign-in, and not by hand in between.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from fleet.core.security.oidc import LEAD, Account, Assignment
from fleet.errors import Conflict, InvalidInput
from fleet.models import Grant, OidcIdentity
from fleet.services.authorization import grants, users

LEADS: list[Callable[[Any, frozenset[str]], None]] = []
"""Given a user and the nodes that their groups make them a lead of: registered by the app that has the quota tree."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The user, or why they are not let in."""

    user: Any = None
    refusal: str = ""


def admit(account: Account) -> Admission:
    """Apply what the provider vouches for. A refusal is returned and not raised: the roles it took are taken all the same."""
    config = settings.CONVOY_OIDC
    assignments = config.assignments(account.groups)
    is_in_no_group = bool(config.groups) and not assignments
    name = config.username_prefix + account.username
    with transaction.atomic():
        user = _user_of(account)
        if user is None and is_in_no_group:
            return Admission(refusal=_in_no_group(name))
        if user is None:
            try:
                user = _create(account, name)
            except InvalidInput as e:
                return Admission(refusal=f"{name} cannot be a user here: {e.message}")
            if user is None:
                return Admission(
                    refusal=f"there is another user {name} already: a fleet admin gives one of them another name"
                )
        if not user.is_active:
            return Admission(refusal=f"{user.get_username()} is disabled")
        if config.groups:
            _assign(user, assignments)
        if is_in_no_group:
            return Admission(refusal=_in_no_group(user.get_username()))
    return Admission(user)


def _user_of(account: Account) -> Any:
    known = OidcIdentity.objects.select_related("user").select_for_update(no_key=True, of=("self",))
    identity = known.filter(issuer=account.issuer, subject=account.subject).first()
    return None if identity is None else identity.user


def _create(account: Account, name: str) -> Any:
    """None if the name is taken, whether it was before or is by another sign-in of this moment."""
    try:
        with transaction.atomic():
            user = users.create(name)
            OidcIdentity.objects.create(user=user, issuer=account.issuer, subject=account.subject)
    except (Conflict, IntegrityError):
        return _user_of(account)
    return user


def _assign(user: Any, assignments: frozenset[Assignment]) -> None:
    leads = frozenset(entry.target for entry in assignments if entry.role == LEAD)
    roles = {(entry.role, entry.target) for entry in assignments if entry.role != LEAD}
    grants.replace(user, roles)
    for assign in LEADS:
        assign(user, leads)
    is_staff = any(role in Grant.WHOLE for role, _ in roles)
    get_user_model().objects.filter(pk=user.pk).exclude(is_staff=is_staff).update(is_staff=is_staff)


def _in_no_group(name: str) -> str:
    return f"{name} is in none of the groups that have a role here: ask for one of them, and sign in again"
