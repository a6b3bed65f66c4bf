"""What is known of the credentials that the fleet uses in a member, beside the row that is read with every job."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import models

from fleet.models.cluster import Cluster
from fleet.models.encrypted import EncryptedJSONField


class MemberCredentials(models.Model):
    """While ``expires_at`` is set, `Cluster.access` has a token of the member that ends then, in the place of ``joined``."""

    class Reason(models.TextChoices):
        ISSUED = "TokenRequested"
        NOT_A_SERVICE_ACCOUNT = "NotAServiceAccount"
        REFUSED = "TokenRequestRefused"

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="credentials")
    joined = EncryptedJSONField(default=dict)
    """`fleet.member.client.Access` as JSON: what the member was joined with, or renewed by hand."""
    expires_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=32, choices=Reason.choices, blank=True)
    message = models.CharField(max_length=300, blank=True)
    since = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True, db_index=True)
    """When a new token is asked for; null: at once."""
    checked_at = models.DateTimeField(null=True, blank=True)
    """When it was asked for last. A worker that asks moves it, and so claims the member."""


@dataclass(frozen=True, slots=True)
class CredentialsState:
    """Whether a token is used in a member that it issued for a while, and else why not; the same by every API."""

    on: bool
    short_lived: bool
    reason: str
    message: str
    since: datetime
    expires_at: datetime | None


def credentials_state(cluster: Cluster) -> CredentialsState:
    """Of a cluster that was read with its ``credentials``."""
    known: MemberCredentials | None = getattr(cluster, "credentials", None)
    expires_at = known.expires_at if known is not None else None
    since = (known.since if known is not None else None) or cluster.joined_at
    if not settings.CONVOY_MEMBERS.token_s:
        reason, message = "TurnedOff", "CONVOY_MEMBER_TOKEN_S is 0: no member is asked for tokens"
    elif not cluster.short_lived_tokens:
        reason, message = "TurnedOff", "short-lived tokens are turned off for this cluster"
    elif known is not None and known.reason:
        reason, message = known.reason, known.message
    else:
        reason, message = "NotAsked", "the member has not been asked for a token yet"
    return CredentialsState(cluster.short_lived_tokens, expires_at is not None, reason, message, since, expires_at)
