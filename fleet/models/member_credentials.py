"""What is known of the credentials that the fleet uses in a member, beside the row that is read with every job."""

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
