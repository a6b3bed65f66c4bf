"""Who changed what, from where, and what became of it."""

from django.db import models


class AuditEntry(models.Model):
    """One write by a person or a script, done or refused. The fleet's own work is in events; what retention deletes is here."""

    class Outcome(models.TextChoices):
        DONE = "done"
        REFUSED = "refused"
        FAILED = "failed"

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=150)
    door = models.CharField(max_length=16)
    """rest, console, admin, kubectl, proxy or retention."""
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
    complete = models.BooleanField(default=True, db_default=True)
    """Whether the line says all it will say; only then it is linked into the chain."""
    seq = models.BigIntegerField(null=True, blank=True, unique=True)
    """Its place in the chain."""
    digest = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["kind", "namespace", "name", "-id"], name="audit_by_object"),
            models.Index(fields=["id"], name="audit_unlinked", condition=models.Q(seq=None)),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.kind} {self.namespace}/{self.name}: {self.outcome}"


class AuditChain(models.Model):
    """Where the chain begins and ends; one row."""

    seq = models.BigIntegerField(default=0)
    """Of its last line."""
    digest = models.CharField(max_length=64, blank=True)
    forgotten_seq = models.BigIntegerField(default=0)
    """Of the last line that retention deleted: the chain begins after it."""
    forgotten_digest = models.CharField(max_length=64, blank=True)
    mark = models.CharField(max_length=64, blank=True)
    """A digest of the fields above, so that the end of the chain cannot be cut off."""


class AuditSink(models.Model):
    """How far the chain has been handed to a sink, and what it last refused with."""

    name = models.CharField(max_length=16, unique=True)
    seq = models.BigIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
