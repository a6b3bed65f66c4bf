"""Team leads named and unnamed. Like roles, they are not journaled, for nobody watches them; the audit has a line of each."""

from django.db.models import QuerySet

from fleet.services import audit
from fleet.trail import current
from quotas.models import QuotaGrant


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
