"""What the workloads of a namespace may ask for, where an admin has said something else than the default."""

from django.db import models

from fleet.core.security.pod_security import Level


class NamespacePolicy(models.Model):
    """Of one namespace, in the whole fleet. Without a row, `fleet.core.security.pod_security.Profile` has the defaults."""

    name = models.CharField(max_length=63, unique=True)
    pod_security = models.CharField(max_length=10, choices=[(level.value, level.value) for level in Level])
    service_accounts = models.JSONField(default=list)
    capabilities = models.JSONField(default=list)
    host_paths = models.JSONField(default=list)
    host_network = models.BooleanField(default=False)
    node_name = models.BooleanField(default=False)
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "namespace policies"

    def __str__(self) -> str:
        return f"{self.name}: {self.pod_security}"
