"""What is kept of a job's state so that its later attempts get it, whatever becomes of the clusters of the earlier ones."""

from django.db import models

from jobs.models.job import Job


class PreservedState(models.Model):
    """Written when a job is sent whose policy has rules of statePreservation, and with each report that changes a value."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="preserved_state", primary_key=True)
    attempt = models.PositiveIntegerField(default=0)
    """The attempt that was sent last: only its reports count."""
    rules = models.JSONField(default=list)
    """The rules that this attempt was sent by, `jobs.core.policies.state_preservation.StateRule.as_json`."""
    values = models.JSONField(default=dict)
    """``{alias: {value, attempt, at}}``: the last value, the attempt that reported it, and when."""
    problems = models.JSONField(default=dict)
    """``{alias: text}``: why the latest value that was reported is not kept."""

    def __str__(self) -> str:
        return f"state of {self.job_id}"
