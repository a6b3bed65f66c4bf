"""What jobs report of themselves: a row of the latest progress of each job, and one for each fact that its runtime has said."""

from django.db import models

from jobs.models.job import Job


class Progress(models.Model):
    """A tenant's words: shown, and believed only where an end and a stop look alike."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="progress", primary_key=True)
    attempt = models.PositiveIntegerField()
    """The attempt that reported it. A later one that has reported nothing yet leaves it."""
    step = models.BigIntegerField(null=True, blank=True)
    total = models.BigIntegerField(null=True, blank=True)
    percent = models.PositiveSmallIntegerField(null=True, blank=True)
    """As it was reported: not always that of its steps (`jobs.runtime.progress`)."""
    eta_s = models.BigIntegerField(null=True, blank=True)
    """Seconds to its end, as estimated when it was reported."""
    loss = models.FloatField(null=True, blank=True)
    world_size = models.BigIntegerField(null=True, blank=True)
    saved_step = models.BigIntegerField(null=True, blank=True)
    reported_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    """When it first reported 100 %."""

    @property
    def percent_done(self) -> int | None:
        """Of its steps, which are true also at the end of a training that was stopped."""
        if self.step is None or not self.total:
            return self.percent
        return min(100 * self.step // self.total, 100)

    def __str__(self) -> str:
        return f"step {self.step} of {self.total}"


class RuntimeFact(models.Model):
    """A tenant's words: shown, and at most a reason to keep its own job off a node."""

    KEPT = 500
    """Rows of one job, the latest."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="runtime_facts", db_index=False)
    attempt = models.PositiveIntegerField()
    key = models.CharField(max_length=40)
    """The same for the same line, however often it is read (`jobs.runtime.fact.by_key`)."""
    at = models.DateTimeField()
    data = models.JSONField()
    """As `jobs.runtime.fact.Fact.as_json` has it."""

    class Meta:
        ordering = ["at", "pk"]
        constraints = [models.UniqueConstraint(fields=["job", "attempt", "key"], name="runtime_fact_once")]
        indexes = [models.Index(fields=["job", "at"], name="runtime_facts_by_time")]

    def __str__(self) -> str:
        return f"{self.data.get('kind')} of {self.job_id}#{self.attempt}"
