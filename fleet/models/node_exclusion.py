"""A node that takes no pods for a while: for one job, or for everyone. The ledger of faulty nodes, a row for each."""

from django.db import models
from django.db.models import Q

from fleet.models.cluster import Cluster


class NodeExclusion(models.Model):
    """By name, not by the node's row: a node that was deleted and registers again is the same machine until the lease ends.

    The row stays for a while after its end, because earlier faults make the next lease longer.
    """

    EVIDENCE = 8
    """Entries that are kept, the latest."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="node_exclusions")
    node = models.CharField(max_length=253)
    hostname = models.CharField(max_length=253)
    """Its label ``kubernetes.io/hostname``, by which copies are kept off it."""
    job_uid = models.UUIDField(null=True, blank=True)
    """The job that it is excluded for; empty: everyone."""
    reason = models.CharField(max_length=32)
    message = models.CharField(max_length=300)
    """In words for everyone who may see the row. That of a row for everyone names no job."""
    evidence = models.JSONField(default=list)
    """``[{key, at, ...}]``: the faults, the latest last; ``key`` names a fault, so that one reported twice counts once."""
    since = models.DateTimeField()
    until = models.DateTimeField()
    faults = models.PositiveSmallIntegerField(default=1)
    fault_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    """Empty: it is in force."""
    allowed_until = models.DateTimeField(null=True, blank=True)
    """Until when faults do not exclude it again, because a person lifted the exclusion."""
    by = models.CharField(max_length=150, blank=True)
    """The person who excluded the node or lifted the exclusion; empty: neither was done by a person."""
    drains = models.BooleanField(default=False, db_default=False)
    """Whether the jobs that have pods on the node leave it, because a person drains it."""
    is_ordered = models.BooleanField(default=False, db_default=False)
    """Whether the copies that are in its cluster were ordered to follow it, as it is now: in force, or ended."""

    class Meta:
        ordering = ["cluster", "node", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "node"], condition=Q(job_uid__isnull=True), name="node_excluded_once"
            ),
            models.UniqueConstraint(
                fields=["job_uid", "cluster", "node"],
                condition=Q(job_uid__isnull=False),
                name="node_excluded_once_a_job",
            ),
        ]
        indexes = [
            models.Index(fields=["until"], condition=Q(ended_at__isnull=True), name="node_exclusions_in_force"),
            models.Index(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="node_exclusions_ended"),
            models.Index(fields=["cluster"], condition=Q(is_ordered=False), name="node_exclusions_to_order"),
        ]

    @property
    def job(self) -> str:
        """Namespace and name of the job that it is excluded for, as its evidence has them; empty: for everyone."""
        latest = self.evidence[-1] if self.evidence and self.job_uid else {}
        return str(latest.get("job", ""))

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.node}"
