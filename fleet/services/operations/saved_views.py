"""Views of lists that users keep, for themselves or for those who read a namespace as they do.

A view is an address and shows no reader more than they may read: it narrows a list that is read with the reader's own rights.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.errors import Forbidden, NotFound, invalid
from fleet.models import Grant, SavedView
from fleet.services.authorization import access

LISTS = ("jobs", "events", "audit")
MOST = 100
"""Of one user."""


def visible(user: Any) -> QuerySet[SavedView]:
    """The user's own, and those that others share with them, for as long as these may share there."""
    own = SavedView.objects.filter(user_id=user.pk)
    if not access.roles(user):
        return own
    namespaces = access.visible_namespaces(user)
    shared = Q(is_shared=True)
    if namespaces is not None:
        shared &= Q(namespace__in=["", *namespaces])
    return SavedView.objects.filter(Q(user_id=user.pk) | shared & _owner_may_share())


def _owner_may_share() -> Q:
    """As `_require_may_share` answers for a user who comes in: who lost the role or is disabled keeps the view, unshared."""
    roles = Grant.objects.filter(user_id=OuterRef("user_id"), role__in=(Grant.Role.EDITOR, Grant.Role.FLEET_ADMIN))
    granted = Exists(roles.filter(Q(namespace="") | Q(namespace=OuterRef("namespace"))))
    return Q(user__is_active=True) & (Q(user__is_superuser=True) | Q(granted))


def save(user: Any, *, list: str, name: str, search: str, is_shared: bool, namespace: str, now: datetime) -> SavedView:
    """Keeps a view; one of the same user, list and name is replaced."""
    if list not in LISTS:
        raise invalid("list", f"must be one of {', '.join(LISTS)}")
    if is_shared:
        _require_may_share(user, namespace)
    with transaction.atomic():
        same = {"user_id": user.pk, "list": list, "name": name}
        others = SavedView.objects.filter(user_id=user.pk).exclude(list=list, name=name)
        if others.count() >= MOST:
            raise invalid("name", f"{MOST} views are kept already: remove one first")
        former = SavedView.objects.filter(**same).first()
        if former is not None and former.is_shared:
            _require_may_share(user, former.namespace)
        about = {"search": search, "is_shared": is_shared, "namespace": namespace if is_shared else "", "saved_at": now}
        row, _ = SavedView.objects.update_or_create(**same, defaults=about)
    return row


def remove(user: Any, key: int) -> None:
    """One's own; one that is shared also by those who may share there."""
    row = visible(user).filter(pk=key).first()
    if row is None:
        raise NotFound(f"there is no view {key}")
    if row.user_id != user.pk:
        _require_may_share(user, row.namespace)
    row.delete()


def _require_may_share(user: Any, namespace: str) -> None:
    if not access.may(user, "apply", "Job", namespace):
        where = f"in namespace {namespace}" if namespace else "with the whole fleet"
        raise Forbidden(f"{user.get_username()} may not share views {where}: it takes the role editor there")
