"""The progress of the drain of a cluster or of one node over REST."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.services.inspect import evictions


class EvictionsSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    drained = serializers.BooleanField()
    jobs_left = serializers.IntegerField(help_text="jobs that run there, or have a share there, and have not left it")
    copies_left = serializers.IntegerField(
        help_text="copies of unfinished jobs there, also of those that have left and whose copy is not removed yet"
    )
    left_last_minute = serializers.IntegerField(
        help_text="jobs and shares that left it, or a drained node of it, within the last minute"
    )
    per_minute = serializers.IntegerField(
        help_text="how many may leave within a minute: the cluster's label `convoy.dev/evictions-per-minute`, else the setting"
    )
    minutes_left = serializers.IntegerField(help_text="at the pace allowed; tolerations may take longer")


class EvictionsView(Guarded, APIView):
    kind = "Cluster"
    permission_classes = [ByRole]

    @extend_schema(operation_id="cluster_evictions", responses=EvictionsSerializer, summary="Progress of a drain")
    def get(self, request: Request, name: str) -> Response:
        """How many jobs have not left a drained or lost cluster yet, and how fast they leave."""
        cluster = get_object_or_404(Cluster.objects.defer("access"), name=name)
        return Response(EvictionsSerializer(evictions.of_cluster(cluster, clock.now())).data)


class NodeJobSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    leaves = serializers.BooleanField(help_text="false: it is divided over clusters, and stays")


class NodeEvictionsSerializer(serializers.Serializer[Any]):
    """Counts are of all jobs; those are named that the caller may read."""

    cluster = serializers.CharField()
    node = serializers.CharField()
    drained = serializers.BooleanField()
    jobs_left = serializers.SerializerMethodField(
        help_text="jobs that run with pods there, and leave it when it is drained; their pods may be there for longer"
    )
    jobs_staying = serializers.SerializerMethodField(
        help_text="divided jobs there, which a drain of the node does not move"
    )
    pods_left = serializers.IntegerField(
        help_text="pods of jobs there that have not ended, also of jobs that have left it: with 0 the node is empty of them"
    )
    jobs = serializers.SerializerMethodField()
    per_minute = serializers.IntegerField(help_text="how many jobs may leave the cluster and its nodes within a minute")
    minutes_left = serializers.IntegerField(help_text="at the pace allowed")

    def get_jobs_left(self, progress: evictions.NodeEvictions) -> int:
        return len(progress.leaving)

    def get_jobs_staying(self, progress: evictions.NodeEvictions) -> int:
        return len(progress.staying)

    @extend_schema_field(NodeJobSerializer(many=True))
    def get_jobs(self, progress: evictions.NodeEvictions) -> Any:
        sees = self.context["sees"]
        jobs = [(job, True) for job in progress.leaving] + [(job, False) for job in progress.staying]
        shown = [
            {"id": job.uid, "kind": job.kind, "namespace": job.namespace, "name": job.name, "leaves": leaves}
            for job, leaves in jobs
            if sees(job.namespace)
        ]
        return NodeJobSerializer(shown, many=True).data


class NodeEvictionsView(Guarded, APIView):
    kind = "Cluster"
    permission_classes = [ByRole]

    @extend_schema(
        operation_id="node_evictions", responses=NodeEvictionsSerializer, summary="Progress of a node's drain"
    )
    def get(self, request: Request, name: str, node: str) -> Response:
        """Which jobs have pods on a node: they leave it when it is drained, at the pace of its cluster."""
        cluster = get_object_or_404(Cluster.objects.defer("access"), name=name)
        may_read = access.may_somewhere(request.user, access.READ, "Job")
        context = {"sees": access.sees(request.user) if may_read else lambda _: False}
        return Response(NodeEvictionsSerializer(evictions.of_node(cluster, node), context=context).data)
