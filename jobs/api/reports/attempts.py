"""Attempts over REST: which jobs of a queue or a cluster were placed, ran and ended within a time."""

from datetime import timedelta
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.services.authorization import access
from jobs.api.reports.series import moment
from jobs.services.series import attempts

_DEFAULT = timedelta(hours=1)


class PastAttemptSerializer(serializers.Serializer[Any]):
    job = serializers.UUIDField(source="job_id_")
    namespace = serializers.CharField()
    name = serializers.CharField()
    number = serializers.IntegerField()
    cluster = serializers.CharField(source="cluster_name")
    placed_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="null: it has not started")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="null: it goes on")
    outcome = serializers.CharField(allow_blank=True, help_text="empty: it goes on")
    gpus = serializers.IntegerField(source="all_gpus")


class PastAttemptsSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    is_cut = serializers.BooleanField(help_text="whether there are more than one answer holds")
    results = PastAttemptSerializer(many=True)


class AttemptsView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(
        operation_id="attempts",
        parameters=[
            OpenApiParameter("cluster", str, description="of one cluster"),
            OpenApiParameter("queue", str, description="of one queue (its path) and all below it"),
            OpenApiParameter("from", OpenApiTypes.DATETIME, description="ISO 8601; default: an hour before `to`"),
            OpenApiParameter("to", OpenApiTypes.DATETIME, description="ISO 8601; default: now"),
        ],
        responses=PastAttemptsSerializer,
    )
    def get(self, request: Request) -> Response:
        """The latest 200 at most, of jobs that the caller may read and that are not deleted."""
        params = request.query_params
        end = moment(params, "to") or clock.now()
        begin = moment(params, "from") or end - _DEFAULT
        visible = access.visible_namespaces(request.user)
        scope = {name: params.get(name, "") for name in ("cluster", "queue")}
        rows, is_cut = attempts.between(begin, end, visible, **scope)
        answer = {"start": begin, "end": end, "is_cut": is_cut, "results": rows}
        return Response(PastAttemptsSerializer(answer).data)
