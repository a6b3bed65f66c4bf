"""Who may change a part of the quota tree only: a team lead edits what is below their node."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models


class QuotaGrant(models.Model):
    """The user may change every node strictly below ``path``, and the queues of the node and of all below it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="quota_grants")
    path = models.CharField(
        max_length=700,
        validators=[RegexValidator(r"\Aroot(/[^/\s]+)*\Z", "must be a full path such as root/vision")],
        help_text="The node they lead: they edit what is below it. A full path such as root/vision.",
    )
    """It may name a node that is not there yet."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "path"], name="quota_grant_once")]
        ordering = ["path", "user"]
        verbose_name = "team lead"

    def __str__(self) -> str:
        return f"{self.user}: below {self.path}"
