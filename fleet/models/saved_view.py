"""Views of the console's lists kept under a name: what a list is narrowed, ordered and grouped by, as its address says."""

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A user's own, or shared with the readers of a namespace, or (empty) the fleet. Knows nothing of what the list shows."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    list = models.CharField(max_length=16)
    name = models.CharField(max_length=63)
    search = models.CharField(max_length=2000, blank=True)
    is_shared = models.BooleanField(default=False)
    namespace = models.CharField(max_length=63, blank=True)
    """Of those it is shared with; empty: everybody with a role. Not looked at where it is not shared."""
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "list", "name"], name="view_once_per_user")]
        indexes = [models.Index(fields=["list", "namespace"], condition=models.Q(is_shared=True), name="views_shared")]

    def __str__(self) -> str:
        return f"{self.list}: {self.name}"
