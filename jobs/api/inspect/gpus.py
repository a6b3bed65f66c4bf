"""GPUs over REST: of one cluster node by node with who is on them, and of the fleet by model."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.services.inspect import gpu_links, gpu_map


class JobOnNodeSerializer(serializers.Serializer[Any]):
    """``id`` and names are empty for a job of a namespace that the caller may not read."""

    id = serializers.SerializerMethodField(help_text="of the job")
    kind = serializers.CharField(source="job.kind", default="")
    namespace = serializers.CharField(source="job.namespace", default="")
    name = serializers.CharField(source="job.name", default="")
    queue = serializers.CharField(source="job.leaf", default="")
    gpus = serializers.IntegerField()

    def get_id(self, row: gpu_map.PodOnNode | gpu_map.HoldOnNode) -> str:
        return str(row.job.uid) if row.job else ""


class PodOnNodeSerializer(JobOnNodeSerializer):
    role = serializers.CharField()
    index = serializers.IntegerField()


class HoldOnNodeSerializer(JobOnNodeSerializer):
    """GPUs that are kept for a job whose pods are not on the node yet."""


class NodeGpusSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    model = serializers.CharField(help_text="of its GPUs; empty: not known")
    domain = serializers.CharField(help_text="the switch or zone it is behind; empty: not known")
    ready = serializers.BooleanField()
    unschedulable = serializers.BooleanField()
    gpus = serializers.IntegerField()
    requested = serializers.IntegerField(help_text="by all pods, Convoy's and others")
    pods = PodOnNodeSerializer(many=True)
    holds = HoldOnNodeSerializer(many=True)


class GpuMapSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    nodes = NodeGpusSerializer(many=True)


class GpuModelSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    model = serializers.CharField()
    nodes = serializers.IntegerField()
    allocatable = serializers.IntegerField()
    requested = serializers.IntegerField()


class GpuModelsSerializer(serializers.Serializer[Any]):
    results = GpuModelSerializer(many=True)


class GpuModelsView(Guarded, APIView):
    kind = "Node"
    permission_classes = [ByRole]

    @extend_schema(operation_id="gpus_by_model", responses=GpuModelsSerializer)
    def get(self, request: Request) -> Response:
        """Of nodes that are ready and schedulable, by cluster and model."""
        return Response(GpuModelsSerializer({"results": gpu_map.models()}).data)


class GpuMapView(Guarded, APIView):
    kind = "Node"
    permission_classes = [ByRole]

    @extend_schema(responses=GpuMapSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The cluster's nodes that have GPUs, by switch and name; at most 2000."""
        rows: QuerySet[Cluster] = Cluster.objects.defer("access")
        cluster = get_object_or_404(rows, name=name)
        gpus = gpu_map.of_cluster(cluster, access.visible_namespaces(request.user, "Job"))
        return Response(GpuMapSerializer({"cluster": cluster.name, "nodes": gpus}).data)


class GpuSerializer(serializers.Serializer[Any]):
    """Names are empty for a pod of a namespace that the caller may not read."""

    index = serializers.IntegerField()
    healthy = serializers.BooleanField()
    taken = serializers.BooleanField()
    namespace = serializers.CharField()
    pod = serializers.CharField()


class NodeDevicesSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    node = serializers.CharField()
    topology = serializers.BooleanField(
        help_text="hands out its GPUs by their links; otherwise the fields below are empty"
    )
    links = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()), help_text="between each two: NV2, PHB, SYS"
    )
    bandwidth = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()), help_text="measured both ways, GB/s"
    )
    gpus = GpuSerializer(many=True)


class NodeDevicesView(Guarded, APIView):
    kind = "Node"
    permission_classes = [ByRole]

    @extend_schema(operation_id="gpus_of_node", responses=NodeDevicesSerializer)
    def get(self, request: Request, name: str, node: str) -> Response:
        """How the GPUs of one node are linked and which pod has which, asked of its cluster now."""
        cluster = get_object_or_404(Cluster.objects.all(), name=name)
        devices = gpu_links.of_node(cluster, node, access.visible_namespaces(request.user, "Job"))
        return Response(NodeDevicesSerializer(devices).data)
