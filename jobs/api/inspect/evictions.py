"""The progress of a drain over REST."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.models import Cluster
from jobs.services.inspect import evictions


class EvictionsSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    drained = serializers.BooleanField()
    jobs_left = serializers.IntegerField(help_text="jobs that run there, or have a share there, and have not left it")
    copies_left = serializers.IntegerField(
        help_text="copies of unfinished jobs there, also of those that have left and whose copy is not removed yet"
    )
    left_last_minute = serializers.IntegerField(help_text="jobs and shares that left it within the last minute")
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
