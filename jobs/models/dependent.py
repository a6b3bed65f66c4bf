"""Objects that jobs refer to: those that travel with a job (ConfigMap, Secret, ...), training runtimes and PriorityClasses."""

import uuid

from django.db import models

from fleet.models.encrypted import EncryptedJSONField


class Dependent(models.Model):
    """All are encrypted at rest: a ConfigMap may hold a secret as well as a Secret does."""

    KINDS = ("ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim")
    """Of the core group: sent as they are to the clusters of the jobs whose pods name them."""
    POD_GROUP = "PodGroup"
    """Of `scheduling.sigs.k8s.io`: sent with the jobs whose pods name it as their gang."""
    DEVICE_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
    """Of `resource.k8s.io`: counted as devices of the jobs whose pods name them, and sent with them."""
    RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
    """Of Kubeflow Trainer: written into the TrainJobs that name them, and sent with them."""
    PRIORITY_CLASS = "PriorityClass"
    """Says how urgent the jobs are that name it; sent to no cluster, whose own class of that name orders its pods."""
    CLUSTER_WIDE = frozenset({"ClusterTrainingRuntime", PRIORITY_CLASS})

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    """Empty for a kind that lives in none."""
    name = models.CharField(max_length=253)
    manifest = EncryptedJSONField()
    moves_nodes = models.BooleanField(default=False, db_default=False)
    """Of a table of switches: written by someone who may say where the nodes of all tenants are."""
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["namespace", "kind", "name"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "namespace", "name"], name="dependent_once_per_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
