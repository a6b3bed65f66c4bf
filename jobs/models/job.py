"""A training job as submitted to the fleet, and where it stands."""

import uuid
from typing import Any

from django.db import models
from django.db.models.functions import Left, StrIndex

from jobs.core.life import jobs as life
from jobs.core.life.jobs import JobState
from jobs.models.listed import CodeField, JobRows, Wide


class Job(models.Model):
    State = JobState
    WAITING = tuple(sorted(life.WAITING))
    ON_MEMBER = tuple(sorted(life.ON_MEMBER))
    OFF_MEMBER = (State.QUEUED, State.SUSPENDED)
    """States without a current attempt: the last report of a member is of an attempt that is over, whose pods may still end."""
    FINISHED = tuple(sorted(life.FINISHED))

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    api_version = models.CharField(max_length=128)
    group = models.GeneratedField(
        expression=Left("api_version", StrIndex("api_version", models.Value("/"))),
        output_field=models.CharField(max_length=128),
        db_persist=True,
    )
    """Of the API, ``kubeflow.org/``: batch and Volcano both have a kind Job. Written by the database."""
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict, blank=True)
    manifest = models.JSONField()
    """As submitted, without status and without what a server fills in."""
    generation = models.PositiveIntegerField(default=1)
    submitted_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    """The author of the manifest, in whose name it is sent to members that are set so; empty: the product itself."""

    roles = models.JSONField()
    """``[{name, replicas, request: {resource: whole units}}]``, the gang as its kind read it."""
    total = models.JSONField()
    """Whole units over all roles, ``pods`` included."""
    gpus = models.PositiveIntegerField(default=0)
    size = models.JSONField(null=True, blank=True)
    """Of a job that can be resized while it runs: ``{role: {replicas, min, max}}``, the size in force; null: it cannot."""
    elastic = models.BooleanField(default=False, db_default=False)
    """The scheduler may resize it while it runs (`jobs.core.resizing.elastic`)."""
    resize = models.JSONField(null=True, blank=True)
    """A growth that waits: ``{sizes: {role: replicas}, by, at, reason}``; decided in `jobs.services.scheduling.decisions`."""
    shrinks = models.JSONField(null=True, blank=True)
    """Pods it gave back for preemptors a moment ago: ``[{job, to, attempt, sizes: {role: [before, after]}, at, until}]``."""
    priority = models.IntegerField(default=0)
    leaf = models.CharField(max_length=700, blank=True, default="")
    """The full path of the quota leaf it is charged to; empty: none is."""
    leaf_fault = models.CharField(max_length=500, blank=True, default="")
    """Why the leaf it asks for by label is not its own: it waits, and does not go on without quota."""
    pinned = models.BooleanField(default=False)
    """Moved to its leaf by hand: its label and namespace do not count while that leaf stands."""
    tree_version = models.BigIntegerField(default=0)
    """The resource version of the quota tree that ``leaf`` was found in; 0: there was none."""
    preemptible = models.BooleanField(default=True)
    """May borrow, and may be taken back from."""
    charge = models.JSONField(null=True, blank=True)
    """What its leaf is charged for it, `quotas.core.trees.amounts.of_job`; null: nothing. The ledger is their sum."""
    charged_at = models.DateTimeField(null=True, blank=True)
    """Since when its leaf is charged for it, or was the last time."""
    reclaim = models.JSONField(null=True, blank=True)
    """While it makes room, and until it is placed again: for whom, why, until when (`jobs.services.scheduling.decisions`)."""
    claimed_at = models.DateTimeField(null=True, blank=True)
    """When jobs of other queues were stopped so that it may borrow, once (`quotas.core.reclaiming.borrowers`)."""
    policy = models.ForeignKey("jobs.Policy", null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs")

    state = models.CharField(
        max_length=16, choices=[(state.value, state.value) for state in JobState], default=State.QUEUED
    )
    reason = models.JSONField(null=True, blank=True)
    """Why it is not running: ``{code, message, ...}`` as `jobs.core.reasons` makes it; null once it runs."""
    reason_code = CodeField(max_length=64, null=True, blank=True, editable=False)
    """Follows ``reason``: lists narrow and count by it without reading what else is in the row."""
    waited = models.JSONField(default=list, blank=True)
    """``[[owner, since]]``: in whose hands it was while it waited, as `jobs.core.explain.timeline.enter_owner` keeps it."""
    waited_codes = models.JSONField(null=True, blank=True)
    """``[[code, since]]`` of its reasons, as `jobs.core.explain.waited_codes.enter_code` keeps them; null: none yet."""
    suspended = models.BooleanField(default=False)
    cluster = models.ForeignKey(
        "fleet.Cluster", null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs_here"
    )
    attempt = models.PositiveIntegerField(default=0)
    """The number of the latest attempt: the fencing token on everything sent."""
    shares = models.JSONField(default=list, blank=True)
    """Of a job that is divided, who has how much: `jobs.core.division.shares`; empty: it runs whole, on ``cluster``."""
    status = models.JSONField(default=dict, blank=True)
    """The member's ``.status`` of the current attempt."""

    trace = models.CharField(max_length=55, blank=True, default="", db_default="", editable=False)
    """The W3C ``traceparent`` of its submission, which the spans of later steps are children of; empty: it is not traced."""

    created_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    unhealthy_since = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    preserves_state = models.BooleanField(default=False, db_default=False)
    """Whether `jobs.models.PreservedState` has rules for the attempt that was sent last: its reports are read by them."""
    ttl_s = models.PositiveIntegerField(null=True, blank=True)
    """Seconds after its end when it is deleted, as its manifest says; null: it is kept."""
    max_wait_s = models.PositiveIntegerField(null=True, blank=True)
    """Seconds that it may wait for quota and room at a stretch, as its annotation says; null: for ever."""
    accounted = models.BooleanField(default=False, db_default=False)
    """Whether its spans are in `jobs.models.UsageSpan`: it has ended, and they change no more."""
    deadline_at = models.DateTimeField(null=True, blank=True)
    """When it has to have ended, as its annotation says; null: it has no deadline."""
    awaits = models.JSONField(null=True, blank=True)
    """Why it may not start before other jobs have ended, as ``{code, message}``; null: it may."""
    deleting_at = models.DateTimeField(null=True, blank=True)
    resource_version = models.BigIntegerField(default=0)

    objects = JobRows.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "namespace", "name", "group"], name="job_once_per_namespace"),
        ]
        indexes = [
            models.Index(fields=["state"]),
            models.Index(fields=["namespace", "state"]),
            Wide(
                fields=[
                    "created_at",
                    "state",
                    "kind",
                    "namespace",
                    "name",
                    "leaf",
                    "cluster",
                    "gpus",
                    "reason_code",
                    "policy",
                    "priority",
                    "suspended",
                    "started_at",
                    "finished_at",
                ],
                name="jobs_listed",
            ),  # fmt: skip
            models.Index(fields=["gpus"]),
            models.Index(fields=["priority"]),
            models.Index(fields=["started_at"]),
            models.Index(fields=["finished_at"]),
            models.Index(fields=["name"]),
            models.Index(fields=["submitted_by", "created_at", "gpus"], name="jobs_by_user"),
            models.Index(fields=["leaf", "state"]),
            models.Index(fields=["leaf"], condition=models.Q(charge__isnull=False), name="jobs_charged"),
            models.Index(
                fields=["ttl_s", "finished_at"], condition=models.Q(ttl_s__isnull=False), name="jobs_expiring"
            ),
            models.Index(
                fields=["state", "max_wait_s"], condition=models.Q(max_wait_s__isnull=False), name="jobs_max_wait"
            ),
            models.Index(
                fields=["finished_at"],
                condition=models.Q(accounted=False, finished_at__isnull=False),
                name="jobs_unaccounted",
            ),
            models.Index(fields=["deleting_at"], condition=models.Q(deleting_at__isnull=False), name="jobs_deleting"),
            models.Index(
                fields=["state", "deadline_at"], condition=models.Q(deadline_at__isnull=False), name="jobs_deadline"
            ),
            models.Index(fields=["state"], condition=models.Q(reclaim__isnull=False), name="jobs_reclaimed"),
            models.Index(fields=["state"], condition=models.Q(awaits__isnull=False), name="jobs_awaiting"),
            models.Index(fields=["state"], condition=models.Q(resize__isnull=False), name="jobs_growing"),
            models.Index(fields=["state"], condition=models.Q(shrinks__isnull=False), name="jobs_shrinking"),
            models.Index(fields=["state"], condition=models.Q(elastic=True), name="jobs_elastic"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def save(self, *, update_fields: Any = None, **options: Any) -> None:
        follows = ["reason_code"] if update_fields and "reason" in update_fields else []
        super().save(update_fields=update_fields and [*update_fields, *follows], **options)

    @property
    def finished(self) -> bool:
        return self.state in self.FINISHED
