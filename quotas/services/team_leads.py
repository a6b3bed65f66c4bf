"""Names and removes team leads. Like roles, they are not journalled, as no watch follows them; the audit has a line of each."""

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from fleet.changes.audit_context import current
from fleet.errors import NotFound, invalid
from fleet.services.auditing import audit
from fleet.services.authorization import grants
from quotas.models import QuotaGrant


def add_lead(username: str, path: str) -> QuotaGrant:
    """Make the user a lead of the node, whether they were one before or not."""
    user = grants.user(username)
    grants.require_roles_by_hand(user)
    row = QuotaGrant(user=user, path=path)
    try:
        row.clean_fields(exclude=["user"])
    except ValidationError as e:
        raise invalid("path", e.messages[0]) from e
    return QuotaGrant.objects.filter(user_id=user.pk, path=path).first() or _get_or_create(user, path)


def remove_lead(lead_id: int) -> None:
    rows = QuotaGrant.objects.filter(pk=lead_id)
    row = rows.select_related("user").first()
    if row is None:
        raise NotFound(f"there is no team lead {lead_id}")
    grants.require_roles_by_hand(row.user)
    take_back(rows)


def replace(user: Any, paths: Collection[str]) -> None:
    """Make the user the lead of exactly these nodes."""
    rows = QuotaGrant.objects.filter(user_id=user.pk)
    take_back(rows.exclude(path__in=paths))
    for path in sorted(set(paths) - set(rows.values_list("path", flat=True))):
        _get_or_create(user, path)


def _get_or_create(user: Any, path: str) -> QuotaGrant:
    """The one that another request made at the same moment counts as this one's."""
    with transaction.atomic():
        row, is_new = QuotaGrant.objects.get_or_create(user=user, path=path)
        if is_new:
            _noted("grant", row)
    return row


def save(row: QuotaGrant) -> None:
    """A new one, or one that was changed."""
    row.save()
    _noted("grant", row)


def take_back(rows: QuerySet[QuotaGrant]) -> None:
    for row in rows.select_related("user"):
        _noted("revoke", row)
        row.delete()


def _noted(verb: str, row: QuotaGrant) -> None:
    asking = current.get()
    if asking is not None:
        audit.done(asking, verb=verb, kind="QuotaGrant", name=str(row))
