"""What was decided for a job (Binding), what was sent for it (Work), and how each run of it went (Attempt)."""

import uuid
from datetime import UTC, datetime
from typing import Any

from django.db import models

from jobs.core.life.works import WorkState
from jobs.models.job import Job


class Binding(models.Model):
    """Job → cluster: the scheduler's latest word on one job, with its explanation for every cluster looked at."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="binding")
    cluster = models.ForeignKey("fleet.Cluster", null=True, blank=True, on_delete=models.SET_NULL)
    attempt = models.PositiveIntegerField(default=0)
    result = models.CharField(max_length=500, blank=True)
    """As the seed prints it: ``{north:0,[{master 1} {worker 2}]}``."""
    explanation = models.JSONField(default=list, blank=True)
    """``[{cluster, fits, code, message, ...}]`` for every cluster looked at, best first."""
    placement = models.JSONField(default=dict, blank=True)
    """Its nodes in the order of ranks and the network domains they share, as `jobs.core.placement.placed_topology` keeps it."""
    scheduled_at = models.DateTimeField(null=True, blank=True)
    former_policy = models.JSONField(null=True, blank=True)
    """Manifest of the policy it was placed by, once that is deleted: in force until another policy selects the job."""
    resource_version = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.job_id} -> {self.cluster_id}"


class Work(models.Model):
    """One member's share of a binding: a copy that is to be, is, or was in a member.

    The row is written before the member is touched and forgotten only after the member's copy is gone.
    """

    State = WorkState

    job_uid = models.UUIDField()
    """Not a foreign key: a copy has to be withdrawn even when the job's row is gone. Its index is that of the constraint."""
    attempt = models.PositiveIntegerField()
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.CASCADE, related_name="works")
    api_version = models.CharField(max_length=128)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    state = models.CharField(
        max_length=16, choices=[(state.value, state.value) for state in WorkState], default=State.PENDING
    )
    claim = models.CharField(max_length=64, blank=True)
    """Token of the worker that is talking to the member about this work; empty: none is."""
    claimed_at = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField()
    """Not to be tried (again) before this."""
    tries = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=500, blank=True)
    marked = models.BooleanField(default=False, db_default=False)
    """Whether all that was sent for it carries marks that only Convoy can make."""
    object_uid = models.CharField(max_length=64, blank=True, default="", db_default="")
    """The uid of the copy in its member; empty until that is known."""
    node_labels = models.JSONField(null=True, blank=True)
    """By role the labels of the nodes that its pods are kept to, those of the flavor it was placed on; null: none."""
    avoided_nodes = models.JSONField(null=True, blank=True)
    """Hostnames of the nodes that its pods are kept off, because they were excluded when it was placed; those of
    kinds whose copies follow, those that are excluded now. Null: none."""
    resize_wanted = models.PositiveIntegerField(default=0, db_default=0)
    """How many times what a running copy follows has changed since it was sent: the size of its job, labels, annotations."""
    resize_done = models.PositiveIntegerField(default=0, db_default=0)
    """The last of these changes that the copy has; below ``resize_wanted`` it has to be brought up to date."""
    stale_metadata = models.JSONField(null=True, blank=True)
    """``{labels: [...], annotations: [...]}``: what the copy still has and its job's manifest has no more; null: nothing."""
    fenced = models.BooleanField(default=False, db_default=False)
    """Whether it was sent so that the agent in the member stops its copy when the fleet is silent there."""
    stopped_at = models.DateTimeField(null=True, blank=True)
    """When it was reported that the agent has stopped the copy."""
    created_at = models.DateTimeField()
    applied_at = models.DateTimeField(null=True, blank=True)
    resource_version = models.BigIntegerField(default=0)

    answered_at: datetime | None = None
    """Not stored: when the member last answered the claimant who holds this instance."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job_uid", "attempt", "cluster"], name="work_once_per_attempt"),
        ]
        indexes = [
            models.Index(fields=["state", "due_at"]),
            models.Index(
                fields=["due_at"],
                condition=models.Q(resize_wanted__gt=models.F("resize_done")),
                name="works_resizing",
            ),
            models.Index(fields=["stopped_at"], condition=models.Q(stopped_at__isnull=False), name="works_stopped"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}#{self.attempt}"

    @property
    def is_resizing(self) -> bool:
        """Whether its copy has to be brought to the size, labels and annotations in force."""
        return self.state == self.State.APPLIED and self.resize_wanted > self.resize_done


class DeletedJob(models.Model):
    """A job that was deleted: what a late sender still makes for it is removed, and not taken for a job that was forgotten."""

    uid = models.UUIDField(primary_key=True)
    at = models.DateTimeField(db_index=True)
    runs = models.JSONField(null=True)
    """Its attempts as `jobs.core.series.recount.Run`, so that what it used is counted although its rows are gone."""

    def __str__(self) -> str:
        return str(self.uid)


class Attempt(models.Model):
    """One run of a job on one cluster, kept as history across every move."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    """Its index is that of the constraint."""
    number = models.PositiveIntegerField()
    leaf = models.CharField(max_length=700, blank=True, default="", db_default="")
    """Its quota leaf, once the job has another one; empty: that of the job."""
    cluster_name = models.CharField(max_length=63)
    placed_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    gpus = models.PositiveIntegerField(null=True, blank=True)
    """What it has of its job's, which may be divided or get another size later; null: all that the job has."""
    sizes = models.JSONField(null=True, blank=True)
    """``[[until, gpus], ...]``: what it had before each resize, until milliseconds since the epoch; null: it has one size."""
    explanation = models.JSONField(default=list, blank=True)
    """The verdicts it was placed by, as its binding had them."""
    outcome = models.CharField(max_length=32, blank=True)
    """Empty while it lasts; Succeeded, Failed, Moved, Suspended, Deleted, Lost or Refused."""
    message = models.CharField(max_length=500, blank=True)
    cause = models.CharField(max_length=32, blank=True, default="", db_default="")
    """Why a failed attempt failed, as `jobs.core.failover.causes.Cause`; empty: it did not, or it is not known yet."""
    evidence = models.JSONField(null=True, blank=True)
    """The pods that show the cause, as they were: ``[{pod, phase, reason, exit_code, node, ...}]``."""
    diagnosis = models.JSONField(null=True, blank=True)
    """Why it failed by the logs of its pods too, as `jobs.core.failover.diagnosis.Diagnosis`; null: not diagnosed."""
    log_due_at = models.DateTimeField(null=True, blank=True)
    """When the logs of its pods are to be read, at the earliest; null: there is nothing to read."""
    log_tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    facts_due_at = models.DateTimeField(null=True, blank=True)
    """When what its runtime says is to be read again; null: it says nothing, or all has been read."""
    facts_of = models.JSONField(null=True, blank=True)
    """A digest of the UIDs of the pods that had failed at the last look."""

    left_at = models.DateTimeField(null=True, blank=True)
    """When the job left it last because its cluster was not well, not for a drain or a taint; null: it never did."""
    returned_at = models.DateTimeField(null=True, blank=True)
    """When it went on there after it had left last, or before; null: it never did."""

    incident = models.ForeignKey(
        "jobs.Incident", null=True, blank=True, on_delete=models.SET_NULL, related_name="attempts", db_index=False
    )
    """What ended it, with all else that ended for the same cause; null: it has not failed, or is not assigned yet."""

    NO_FAILURE = {  # noqa: RUF012
        "cause": "", "evidence": None, "diagnosis": None, "log_due_at": None, "log_tries": 0, "incident": None,
    }  # fmt: skip
    """Fields of an attempt that has not failed."""

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="attempt_numbered_once")]
        indexes = [
            models.Index(fields=["ended_at"], name="attempts_by_end"),
            models.Index(
                fields=["ended_at"], condition=models.Q(outcome__in=["Failed", "Refused"]), name="attempts_failed"
            ),
            models.Index(
                fields=["log_due_at"], condition=models.Q(log_due_at__isnull=False), name="attempts_to_diagnose"
            ),
            models.Index(
                fields=["facts_due_at"], condition=models.Q(facts_due_at__isnull=False), name="attempts_to_follow"
            ),
            models.Index(
                fields=["cluster_name", "returned_at"],
                condition=models.Q(returned_at__isnull=False),
                name="attempts_returned",
            ),
            models.Index(fields=["incident"], condition=models.Q(incident__isnull=False), name="attempts_of_incident"),
            models.Index(
                fields=["ended_at"],
                condition=models.Q(incident__isnull=True) & ~models.Q(cause=""),
                name="attempts_unassigned",
            ),
        ]

    @property
    def former_sizes(self) -> list[dict[str, Any]]:
        """What it had before each resize, the oldest first."""
        return [{"until": datetime.fromtimestamp(until / 1000, UTC), "gpus": gpus} for until, gpus in self.sizes or []]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.number} on {self.cluster_name}"
