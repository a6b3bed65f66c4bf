"""Roles given and taken back, and the tokens of others: a fleet admin's work. What a role allows is said in `access`."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q, QuerySet

from fleet.changes.audit_context import current
from fleet.errors import Conflict, NotFound, invalid
from fleet.kube import names
from fleet.models import Grant, LoginCode, OidcIdentity, SigninLink, Token
from fleet.services.auditing import audit
from fleet.services.authorization import access, token_tree

Role = Grant.Role


def users() -> QuerySet[Any]:
    return get_user_model().objects.prefetch_related("grants").order_by("username")


def user(username: str) -> Any:
    account = get_user_model().objects.filter(username=username).first()
    if account is None:
        raise NotFound(f"there is no user {username[:150]}")
    return account


def grant(username: str, role: str, namespace: str) -> Grant:
    """The grant, whether it was there before or not."""
    if role not in Role.values:
        raise invalid("role", f"must be one of {', '.join(Role.values)}")
    if namespace and role in Grant.WHOLE:
        raise invalid("namespace", Grant.NOT_HERE)
    if namespace and (fault := names.label_fault(namespace)):
        raise invalid("namespace", fault)
    if role == Role.EDITOR and access.is_closed(namespace):
        raise invalid("namespace", "is closed to editors: it is of the clusters themselves")
    owner = user(username)
    require_roles_by_hand(owner)
    with transaction.atomic():
        row, is_new = Grant.objects.get_or_create(user=owner, role=role, namespace=namespace)
        if is_new:
            noted("grant", row)
    return row


def take_back(grant_id: int) -> None:
    """Remove a grant; refused for the last grant that makes anyone a fleet admin, as no user could restore it."""
    with transaction.atomic():
        _lock_admins()
        row = Grant.objects.select_for_update(no_key=True).select_related("user").filter(pk=grant_id).first()
        if row is None:
            raise NotFound(f"there is no grant {grant_id}")
        require_roles_by_hand(row.user)
        if _is_of_last_admin(row):
            raise Conflict(f"{row.user} is the last fleet admin: make another one first")
        _revoke(row)


def replace(owner: Any, roles: Collection[tuple[str, str]]) -> None:
    """Give the user exactly these, each as (role, namespace); but the last fleet admin stays one, and the audit says so."""
    with transaction.atomic():
        _lock_admins()
        for row in Grant.objects.select_related("user").filter(user_id=owner.pk).order_by("pk"):
            if (row.role, row.namespace) in roles:
                continue
            if _is_of_last_admin(row):
                _refused("revoke", row, "the last fleet admin stays one")
            else:
                _revoke(row)
        for role, namespace in sorted(roles):
            row, is_new = Grant.objects.get_or_create(user=owner, role=role, namespace=namespace)
            if is_new:
                noted("grant", row)


def is_of_company(owner: Any) -> bool:
    """Whether the user signs in with an account of the provider that is set. Those of a former provider sign in no more."""
    return OidcIdentity.objects.filter(user_id=owner.pk, issuer=settings.CONVOY_OIDC.issuer).exists()


def require_roles_by_hand(owner: Any) -> None:
    """Refuse to change what groups decide: the next sign-in would change it back."""
    if settings.CONVOY_OIDC.groups and is_of_company(owner):
        raise Conflict(f"the roles of {owner.get_username()} are those of their groups at {settings.CONVOY_OIDC.name}")


def require_another_admin(user: Any) -> None:
    """Inside a transaction that makes the user one no longer: refuse it for the last fleet admin."""
    _lock_admins()
    if not _other_admins().exclude(pk=user.pk).exists():
        raise Conflict(f"{user.get_username()} is the last fleet admin: make another one first")


def mint(username: str, name: str, **about: Any) -> tuple[Token, str]:
    """Create a token for another user, such as a pipeline's; ``about`` as in `access.mint`."""
    return access.mint(user(username), name, **about)


def revoke(username: str, token_id: int, *, now: datetime) -> None:
    """Another user's token, with all that it minted."""
    with transaction.atomic():
        if not Token.objects.filter(pk=token_id, user_id=user(username).pk).exists():
            raise NotFound(f"{username} has no token {token_id}")
        if count := token_tree.revoke(token_id, now=now):
            _noted("revoke", "Token", token_tree.audit_name(username, token_id, count))


def revoke_all(username: str, *, now: datetime) -> int:
    """End what a thief of the user's credentials may have left behind; returns the number of tokens.

    Those are the user's tokens, those the user minted for others, and what all these minted; sign-in links, and logins that
    wait for their token. Sessions end too where the user has no password here: those of one who has end with a new password.
    """
    with transaction.atomic():
        owner = user(username)
        if not owner.has_usable_password():
            owner.set_unusable_password()  # another one, of which no session knows
            owner.save(update_fields=["password"])
        count = token_tree.revoke_all(owner.pk, now=now)
        SigninLink.objects.filter(user_id=owner.pk).delete()
        LoginCode.objects.filter(user_id=owner.pk).delete()
        _noted("revoke", "Token", f"{username}: all, {count} in number")
    return count


def _is_of_last_admin(row: Grant) -> bool:
    return row.role == Role.FLEET_ADMIN and not _other_admins(~Q(grants__pk=row.pk)).exists()


def _revoke(row: Grant) -> None:
    revoked = Grant(user=row.user, role=row.role, namespace=row.namespace)
    row.delete()
    noted("revoke", revoked)


def _other_admins(but: Q | None = None) -> QuerySet[Any]:
    by_grant = Q(grants__role=Role.FLEET_ADMIN, grants__namespace="") & (Q() if but is None else but)
    return get_user_model().objects.filter(Q(is_superuser=True) | by_grant, is_active=True)


def _lock_admins() -> None:
    """Serialise the count of admins: two admins who remove each other at one moment must not both succeed."""
    users = get_user_model().objects
    list(users.select_for_update(no_key=True).filter(is_superuser=True).order_by("pk").values_list("pk"))
    admins = Grant.objects.filter(role=Role.FLEET_ADMIN, namespace="")
    list(admins.select_for_update(no_key=True).order_by("pk").values_list("pk"))


def noted(verb: str, row: Grant) -> None:
    _noted(verb, "Grant", str(row))


def _refused(verb: str, row: Grant, message: str) -> None:
    asking = current.get()
    if asking is not None:
        audit.refused(asking, 409, message, verb=verb, kind="Grant", name=str(row))


def noted_user(verb: str, username: str) -> None:
    _noted(verb, "User", username)


def _noted(verb: str, kind: str, name: str) -> None:
    """Audit a change that is not journaled, as no client watches these rows."""
    asking = current.get()
    if asking is not None:
        audit.done(asking, verb=verb, kind=kind, name=name)
