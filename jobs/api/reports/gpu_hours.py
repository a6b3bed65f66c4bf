"""GPU-hours over REST, as JSON or comma-separated values: by team, user, queue, cluster or GPU model."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.services.authorization import access
from jobs.api.listing import AsPlainText
from jobs.api.reports import tables
from jobs.services.series import hours

_DEFAULT = timedelta(days=7)
_COLUMNS = ("name", "used_gpu_hours", "held_gpu_hours", "used_gpu_s", "held_gpu_s", "attempts")


class GpuHoursSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, help_text="empty: without a queue, a user or a model that is known")
    used_gpu_hours = serializers.FloatField(help_text="while the attempts ran")
    held_gpu_hours = serializers.FloatField(help_text="from their placement to their start")
    used_gpu_s = serializers.FloatField(help_text="the same in GPU-seconds, exact to a millisecond")
    held_gpu_s = serializers.FloatField()
    attempts = serializers.IntegerField()


class GpuHoursAnswerSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    results = GpuHoursSerializer(many=True)


class GpuHoursView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]
    content_negotiation_class = AsPlainText

    @extend_schema(
        operation_id="gpu_hours",
        parameters=tables.parameters(hours.Owner, _DEFAULT),
        responses={
            (200, "application/json"): GpuHoursAnswerSerializer,
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 31 days, from the attempts of all jobs that the caller may read, of deleted jobs as well."""
        now = clock.now()
        asked = tables.read(request, hours.Owner, _DEFAULT, now)
        shares = hours.read(asked.by, asked.begin, asked.end, now, access.visible_namespaces(request.user))
        rows = [_row(share) for share in shares]
        if asked.as_csv:
            return _as_csv(rows, asked.by)
        return Response(
            GpuHoursAnswerSerializer({"by": asked.by, "start": asked.begin, "end": asked.end, "results": rows}).data
        )


def _row(share: hours.Share) -> dict[str, Any]:
    used, held = share.time.used_ms, share.time.held_ms
    amounts = (tables.hours(used), tables.hours(held), used / 1000, held / 1000, share.time.runs)
    return dict(zip(_COLUMNS, (share.name, *amounts), strict=True))


def _as_csv(rows: Sequence[dict[str, Any]], by: str) -> HttpResponse:
    cells = ([row[column] for column in _COLUMNS] for row in rows)
    return tables.as_csv([by, *_COLUMNS[1:]], cells, f"gpu-hours-by-{by}")
