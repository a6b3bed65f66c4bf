"""Pods of jobs as REST shows them: those that are there, and those that have ended and whose log is kept."""

from datetime import datetime

from rest_framework import serializers

from fleet.models import Cluster, EndedPod, Pod
from fleet.services.logs import recording


class PodSerializer(serializers.ModelSerializer[Pod]):
    cluster = serializers.CharField(source="cluster.name", read_only=True)
    ready = serializers.SerializerMethodField(help_text="containers that are ready, of all: 1/1")
    stale_since = serializers.SerializerMethodField(
        help_text="since when its cluster is silent: the pod is shown as of then"
    )

    class Meta:
        model = Pod
        fields = (
            "name", "namespace", "uid", "cluster", "attempt", "role", "index", "node", "phase", "ready",
            "ready_containers", "containers", "restarts", "reason", "message", "created_at", "started_at",
            "stale_since",
        )  # fmt: skip
        read_only_fields = fields

    def get_stale_since(self, pod: Pod) -> datetime | None:
        is_silent = pod.cluster.state == Cluster.State.UNKNOWN
        return pod.cluster.last_heartbeat or pod.cluster.state_since if is_silent else None

    def get_ready(self, pod: Pod) -> str:
        return f"{pod.ready_containers}/{pod.containers}"


class EndedPodSerializer(serializers.ModelSerializer[EndedPod]):
    cluster = serializers.CharField(source="cluster_name", read_only=True)
    phase = serializers.SerializerMethodField()
    log = serializers.ChoiceField(
        source="state",
        choices=EndedPod.State.choices,
        read_only=True,
        help_text="Due: it is being read from the cluster",
    )
    message = serializers.CharField(read_only=True, help_text="why the log, or a part of it, is not kept")
    log_bytes = serializers.IntegerField(read_only=True, allow_null=True, help_text="of all its containers; null: none")

    class Meta:
        model = EndedPod
        fields = (
            "name", "namespace", "uid", "cluster", "attempt", "role", "index", "phase", "ended_at", "log", "message",
            "log_bytes",
        )  # fmt: skip
        read_only_fields = fields

    def get_phase(self, ended: EndedPod) -> str:
        return recording.pod_of(ended).phase
