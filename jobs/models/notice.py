"""What members have recorded of notices to the pods of jobs: a row for each notice of each pod."""

from django.db import models

from jobs.models.job import Job


class Notice(models.Model):
    """A pod was notified that its place is taken back."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="notices", db_index=False)
    attempt = models.PositiveIntegerField()
    cluster_name = models.CharField(max_length=63)
    notice_id = models.CharField(max_length=253)
    pod = models.CharField(max_length=253)
    cause = models.CharField(max_length=253)
    node = models.CharField(max_length=253, blank=True)
    scope = models.CharField(max_length=8)
    """`jobs.runtime.notices.Scope`: Pods, or Job when all pods of the job had to leave."""
    at = models.DateTimeField()
    deadline = models.DateTimeField()
    """This and what was heard, left and saved are by the clock of the member."""
    until = models.DateTimeField(null=True, blank=True)
    """Its deadline by the clock of the fleet, at the latest: it counts from when the fleet first heard of the notice."""
    heard_at = models.DateTimeField(null=True, blank=True)
    left_at = models.DateTimeField(null=True, blank=True)
    saved_step = models.BigIntegerField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    """When the whole job was stopped, by the supervisor or by its own end."""
    settled_at = models.DateTimeField(null=True, blank=True)
    """When the fleet had done what follows from it: another size, or another place in its queue."""

    class Meta:
        ordering = ["at", "pod"]
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "notice_id", "pod"], name="notice_once_per_pod"),
        ]
        indexes = [
            models.Index(fields=["at"], condition=models.Q(settled_at__isnull=True), name="notices_unsettled"),
            models.Index(fields=["cluster_name", "at"], name="notices_of_cluster"),
        ]

    def __str__(self) -> str:
        return f"{self.pod} until {self.deadline}"
