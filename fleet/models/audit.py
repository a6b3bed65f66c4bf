"""Who changed what, from where, and what became of it."""

from django.db import models


class AuditEntry(models.Model):
    """One write by a person or a script, done or refused. The fleet's own work is in events, not here."""

    class Outcome(models.TextChoices):
        DONE = "done"
        REFUSED = "refused"
        FAILED = "failed"

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=150)
    door = models.CharField(max_length=16)
    """rest, console, admin, kubectl or proxy."""
    address = models.CharField(max_length=64, blank=True)
    verb = models.CharField(max_length=32)
    request = models.CharField(max_length=200, blank=True)
    """As it came in: method and path."""
    cluster = models.CharField(max_length=253, blank=True)
    """Where the object is, when it is a member's own."""
    kind = models.CharField(max_length=63, blank=True)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253, blank=True)
    uid = models.CharField(max_length=64, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    message = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True, blank=True)
    """Only what changed; secrets are blotted out."""
    after = models.JSONField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["kind", "namespace", "name", "-id"], name="audit_by_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.kind} {self.namespace}/{self.name}: {self.outcome}"
