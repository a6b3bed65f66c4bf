"""A member cluster: how it is reached, how it is doing, what it serves."""

import uuid
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Q

from fleet.core import tags
from fleet.core.fits import SCHEDULER, Offer
from fleet.core.members.freshness import HEARTBEAT_GAP, Freshness
from fleet.kube.resources import RESERVATIONS
from fleet.models.encrypted import EncryptedJSONField


class Cluster(models.Model):
    """One member. ``access`` holds `fleet.member.client.Access` as JSON, encrypted; it never leaves by any door."""

    class State(models.TextChoices):
        READY = "Ready"
        NOT_READY = "NotReady"
        UNKNOWN = "Unknown"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=63, unique=True)
    server = models.CharField(max_length=500)
    access = EncryptedJSONField()
    member_uid = models.CharField(max_length=64, blank=True)
    """The uid of the member's kube-system namespace: the same cluster cannot be joined twice."""

    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    taints = models.JSONField(default=list, blank=True)
    """``[{key, value, effect, timeAdded}]``; health taints are added and removed by the heartbeat."""
    provider = models.CharField(max_length=63, blank=True)
    region = models.CharField(max_length=63, blank=True)
    zone = models.CharField(max_length=63, blank=True)
    cordoned = models.BooleanField(default=False)
    impersonation = models.BooleanField(default=False, db_default=False)
    """Whether what a person asks of the member, or sends there, is asked in that person's name."""
    short_lived_tokens = models.BooleanField(default=True, db_default=True)
    """Whether the member is asked for tokens that end, to be used in the place of what it was joined with."""

    state = models.CharField(max_length=16, choices=State.choices, default=State.UNKNOWN)
    state_reason = models.CharField(max_length=64, blank=True)
    state_message = models.CharField(max_length=500, blank=True)
    state_raw = models.CharField(max_length=500, blank=True, default="", db_default="")
    """What the network said, word for word, where the message says it in people's words."""
    state_since = models.DateTimeField()
    last_heartbeat = models.DateTimeField(null=True, blank=True)
    """When the member last answered."""
    failing_since = models.DateTimeField(null=True, blank=True)
    """The first failed look of an unbroken row of them; null while the member is well."""
    unanswered = models.PositiveIntegerField(default=0, db_default=0)
    """Dispatches in a row that the member left without an answer."""
    circuit_opened_at = models.DateTimeField(null=True, blank=True)
    """Since when nothing but probes is dispatched to it, because it answers none; null: the circuit is closed."""
    circuit_probe_at = models.DateTimeField(null=True, blank=True)
    """When one dispatch is tried as the next probe. A worker that makes it moves it, and so claims the probe."""
    synced_at = models.DateTimeField(null=True, blank=True)
    """When nodes and pods were last listed whole; null: capacity not known yet, nothing is placed here."""

    watched_since = models.DateTimeField(null=True, blank=True)
    watched_until = models.DateTimeField(null=True, blank=True)
    """The latest unbroken time in which rows were what the member shows, as its watcher confirms; null: not confirmed yet."""
    looked_at = models.DateTimeField(null=True, blank=True)
    """When the heartbeat last looked at it, whatever it found; null: not yet."""
    stale_since = models.DateTimeField(null=True, blank=True)
    """As of when the rows show the member, if that is too long ago; then nothing is placed here or judged."""

    version = models.CharField(max_length=64, blank=True)
    scheduler = models.CharField(max_length=128, blank=True)
    """``koord-scheduler:v1.6.0``; empty: it cannot be seen from outside."""
    apis = models.JSONField(default=dict, blank=True)
    """What discovery says: ``{"kubeflow.org/v1": {"PyTorchJob": "pytorchjobs"}}``."""
    discovered_at = models.DateTimeField(null=True, blank=True)
    """When version, apis and permissions were last learned."""
    node_taints_due_at = models.DateTimeField(null=True, blank=True)
    """Not to be asked before this to taint its nodes as the ledger says; null: as soon as there is something to change."""
    discovery_due_at = models.DateTimeField(null=True, blank=True, db_index=True)
    """When they are asked for again; null: at once. A worker that asks moves it, and so claims the member."""
    permissions = models.JSONField(default=list, blank=True)
    """``[{verb, resource, allowed, needed_for}]`` as probed at join and on each discovery."""
    joined_at = models.DateTimeField()
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["member_uid"], condition=~Q(member_uid=""), name="one_row_per_member")
        ]

    def __str__(self) -> str:
        return self.name

    def serves(self, api_version: str, kind: str) -> bool:
        return kind in self.apis.get(api_version, {})

    @property
    def freshness(self) -> Freshness:
        return Freshness(self.watched_since, self.watched_until)

    def is_heartbeat_recent(self, now: datetime) -> bool:
        """Whether its state and health taints are of now, and not of before a pause of the heartbeat."""
        return self.looked_at is None or abs(now - self.looked_at) <= HEARTBEAT_GAP

    @property
    def circuit_message(self) -> str:
        """The same for as long as the circuit is open: it becomes the reason of each job that waits for it."""
        if self.circuit_opened_at is None:
            return "Jobs are sent to the cluster."
        every = settings.CONVOY_MEMBERS.circuit_probe_s
        return (
            f"it left dispatches unanswered since {self.circuit_opened_at:%H:%M:%S} UTC; one is tried every {every:g} s"
        )

    @property
    def freshness_message(self) -> str:
        if self.stale_since is None:
            return "The nodes, pods and jobs of the cluster are shown as they are."
        return (
            f"shown as of {self.stale_since:%Y-%m-%d %H:%M:%S} UTC: nothing newer is known of its nodes, pods and jobs"
        )

    @property
    def simulated(self) -> bool:
        """Whether it is played by the simulator beside this product."""
        home = settings.CONVOY_SIMULATOR
        return bool(home) and (Path(home) / f"{self.name}.kubeconfig").is_file()

    @property
    def drained(self) -> bool:
        """Its jobs are to move away, and it gets no new ones."""
        return any(tags.is_drain(taint) for taint in self.taints)

    @property
    def offer(self) -> Offer:
        """Whether it can hold reservations."""
        served = self.serves(RESERVATIONS.api_version, RESERVATIONS.kind)
        return Offer(self.version, self.labels.get(SCHEDULER) or self.scheduler, served)
