"""What GPUs do, over REST: by cluster, node and job, over time, and which of them are allocated and idle."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.clusters import visible
from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import NotFound, invalid
from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.models import Job
from jobs.services.gpus import groups, idle, usage
from jobs.services.gpus.usage import GpuUse

_LONGEST_H = 72


class ClusterUseSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    measured = serializers.IntegerField(help_text="GPUs whose utilisation is known now")
    utilization = serializers.FloatField(allow_null=True, help_text="percent, the mean over them; null: not known")
    read_at = serializers.DateTimeField(allow_null=True, help_text="when an exporter answered last")
    exporters = serializers.IntegerField(help_text="that were found there")
    answered = serializers.IntegerField(help_text="exporters that answered at the last reading")
    message = serializers.CharField(help_text="why not all of them were read; empty: all were")


class ClusterUsesSerializer(serializers.Serializer[Any]):
    results = ClusterUseSerializer(many=True)


class MeasuredGpuSerializer(serializers.Serializer[Any]):
    gpu = serializers.CharField(source="reading.gpu", help_text="its number on the node; of an instance such as 3/7")
    uuid = serializers.CharField(source="reading.uuid")
    model = serializers.CharField(source="reading.model")
    utilization = serializers.FloatField(source="reading.utilization", allow_null=True, help_text="percent")
    memory_used = serializers.FloatField(source="reading.memory_used", allow_null=True, help_text="MiB")
    memory_total = serializers.FloatField(source="reading.memory_total", allow_null=True, help_text="MiB")
    power = serializers.FloatField(source="reading.power", allow_null=True, help_text="W")
    temperature = serializers.FloatField(source="reading.temperature", allow_null=True, help_text="degrees Celsius")
    idle_since = serializers.SerializerMethodField(help_text="since when it is allocated and idle; null: it is not")

    def get_idle_since(self, use: GpuUse) -> str | None:
        return use.reading.idle_since or None


class NodeGpuSerializer(MeasuredGpuSerializer):
    """Names are empty for a job of a namespace that the caller may not read, and where no job has it."""

    id = serializers.SerializerMethodField(help_text="of the job")
    namespace = serializers.CharField(source="job.namespace", default="")
    name = serializers.CharField(source="job.name", default="")
    pod = serializers.SerializerMethodField()

    def get_id(self, use: GpuUse) -> str:
        return str(use.job.uid) if use.job else ""

    def get_pod(self, use: GpuUse) -> str:
        return use.pod.name if use.job and use.pod else ""


class NodeUseSerializer(serializers.Serializer[Any]):
    node = serializers.CharField()
    at = serializers.DateTimeField(help_text="when it was measured")
    gpus = NodeGpuSerializer(many=True)


class NodeUsesSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    nodes = NodeUseSerializer(many=True, help_text="those whose readings are not too old")


class JobUseSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="job.uid")
    namespace = serializers.CharField(source="job.namespace")
    name = serializers.CharField(source="job.name")
    gpus = serializers.IntegerField(help_text="of which there are readings")
    utilization = serializers.FloatField(allow_null=True, help_text="percent, the mean over them; null: not known")
    memory_used = serializers.FloatField(help_text="MiB")
    power = serializers.FloatField(help_text="W")


class JobUsesSerializer(serializers.Serializer[Any]):
    results = JobUseSerializer(many=True)


class JobGpuSerializer(MeasuredGpuSerializer):
    cluster = serializers.CharField()
    node = serializers.CharField()
    at = serializers.DateTimeField()
    pod = serializers.CharField(source="pod.name")
    role = serializers.CharField(source="pod.role")
    index = serializers.IntegerField(source="pod.index")


class GpuLineSerializer(serializers.Serializer[Any]):
    node = serializers.CharField(source="use.node")
    gpu = serializers.CharField(source="use.reading.gpu")
    pod = serializers.CharField(source="use.pod.name")
    values = serializers.ListField(child=serializers.FloatField(allow_null=True), help_text="percent; null: not known")


class GpuHistorySerializer(serializers.Serializer[Any]):
    start = serializers.IntegerField(help_text="of the first value, in seconds since 1970")
    step = serializers.IntegerField(help_text="seconds")
    lines = GpuLineSerializer(many=True, help_text="of at most 64 GPUs")


class JobGpusSerializer(serializers.Serializer[Any]):
    gpus = JobGpuSerializer(many=True, help_text="that its pods have and of which a reading is known")
    history = GpuHistorySerializer()


class IdleJobSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="job.uid")
    kind = serializers.CharField(source="job.kind")
    namespace = serializers.CharField(source="job.namespace", help_text="the team")
    name = serializers.CharField(source="job.name")
    queue = serializers.CharField(source="job.leaf")
    cluster = serializers.CharField()
    gpus = serializers.IntegerField(source="job.gpus", help_text="that the job has in all")
    idle_gpus = serializers.IntegerField()
    since = serializers.DateTimeField(help_text="of the GPU that has been idle the longest")
    gpu_hours = serializers.SerializerMethodField(help_text="for which they have been idle, up to their last reading")

    def get_gpu_hours(self, row: idle.IdleJob) -> float:
        return round(row.idle_s / 3600, 2)


class IdleJobsSerializer(serializers.Serializer[Any]):
    minutes = serializers.FloatField(help_text="for which a GPU is idle at least before its job is listed")
    percent = serializers.FloatField(help_text="of utilisation up to which a GPU counts as idle")
    is_cut = serializers.BooleanField(help_text="whether there are more than these")
    results = IdleJobSerializer(source="jobs", many=True, help_text="what wastes most first")


class GroupUseSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="the namespace, or the path of the queue; empty: jobs without a queue")
    gpus = serializers.IntegerField(help_text="that its running jobs have")
    measured = serializers.IntegerField(help_text="of which the utilisation is known")
    utilization = serializers.FloatField(allow_null=True, help_text="percent, the mean over them; null: not known")
    idle = serializers.IntegerField(help_text="allocated, and idle for as long as it takes to be listed as idle")


class GroupUsesSerializer(serializers.Serializer[Any]):
    results = GroupUseSerializer(many=True, help_text="those that have most GPUs first")


class ClusterUsesView(Guarded, APIView):
    kind = "Cluster"
    permission_classes = [ByRole]

    @extend_schema(operation_id="gpu_usage_by_cluster", responses=ClusterUsesSerializer)
    def get(self, request: Request) -> Response:
        """How much the GPUs of each cluster compute, and how its exporters were read last."""
        return Response(ClusterUsesSerializer({"results": usage.of_clusters(clock.now())}).data)


class NodeUsesView(Guarded, APIView):
    kind = "Node"
    permission_classes = [ByRole]

    @extend_schema(operation_id="gpu_usage_by_node", responses=NodeUsesSerializer)
    def get(self, request: Request, name: str) -> Response:
        """What each GPU of a cluster does, as the exporters there measured it last."""
        cluster = get_object_or_404(Cluster.objects.defer("access"), name=name)
        nodes = usage.of_cluster(cluster, access.visible_namespaces(request.user, "Job"), clock.now())
        return Response(NodeUsesSerializer({"cluster": cluster.name, "nodes": nodes}).data)


class JobUsesView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(operation_id="gpu_usage_by_job", responses=JobUsesSerializer)
    def get(self, request: Request) -> Response:
        """How much the GPUs of each job compute, of all jobs that the caller may read."""
        uses = usage.of_jobs(access.visible_namespaces(request.user), clock.now())
        return Response(JobUsesSerializer({"results": uses}).data)


class GroupUsesView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(
        operation_id="gpu_usage_by_group",
        parameters=[OpenApiParameter("by", str, enum=list(groups.FIELDS), description="default: namespace")],
        responses=GroupUsesSerializer,
    )
    def get(self, request: Request) -> Response:
        """How many GPUs the running jobs of each team or queue have, and what those do; of jobs that the caller may read."""
        by = request.query_params.get("by") or "namespace"
        if by not in groups.FIELDS:
            raise invalid("by", f"must be one of {', '.join(groups.FIELDS)}")
        uses = groups.of_groups(by, access.visible_namespaces(request.user), clock.now())
        return Response(GroupUsesSerializer({"results": uses}).data)


class JobGpusView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(
        operation_id="job_gpu_usage",
        parameters=[OpenApiParameter("hours", int, description=f"of the history, 1 to {_LONGEST_H}; default: 1")],
        responses=JobGpusSerializer,
    )
    def get(self, request: Request, id: UUID) -> Response:
        """What each GPU of the job's pods does, and did since they started."""
        job = visible(Job.objects.all(), request.user).filter(uid=id).first()
        if job is None:
            raise NotFound("there is no such job")
        self.check_object_permissions(request, job)
        now = clock.now()
        uses = usage.of_job(job, now)
        history = usage.history(uses, now, _span(request))
        return Response(JobGpusSerializer({"gpus": uses, "history": history}).data)


def _span(request: Request) -> timedelta:
    text = request.query_params.get("hours") or "1"
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= _LONGEST_H):
        raise invalid("hours", f"must be a whole number from 1 to {_LONGEST_H}")
    return timedelta(hours=int(text))


class IdleJobsView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(operation_id="idle_gpus", responses=IdleJobsSerializer)
    def get(self, request: Request) -> Response:
        """Running jobs that leave GPUs idle, of all that the caller may read. What is not measured is not listed."""
        return Response(IdleJobsSerializer(idle.find(access.visible_namespaces(request.user), clock.now())).data)
