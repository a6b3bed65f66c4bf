"""GPU-hours over REST, as JSON or comma-separated values: by team, user, queue, cluster or GPU model."""

import csv
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import invalid
from fleet.services.authorization import access
from jobs.api.listing import AsPlainText, Line, plain
from jobs.api.reports.series import moment
from jobs.services.series import hours

_DEFAULT = timedelta(days=7)
_HOUR_MS = 3_600_000
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
        parameters=[
            OpenApiParameter("by", str, enum=[*hours.Owner], description="a team is a namespace; default: team"),
            OpenApiParameter("from", OpenApiTypes.DATETIME, description="ISO 8601; default: 7 days before `to`"),
            OpenApiParameter("to", OpenApiTypes.DATETIME, description="ISO 8601; default: now"),
            OpenApiParameter("form", str, enum=["json", "csv"], description="default: json"),
        ],
        responses={
            (200, "application/json"): GpuHoursAnswerSerializer,
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 31 days, from the attempts of all jobs that the caller may read, of deleted jobs as well."""
        params, now = request.query_params, clock.now()
        by, form = params.get("by") or hours.Owner.TEAM, params.get("form") or "json"
        if by not in [*hours.Owner]:
            raise invalid("by", f"must be one of {', '.join(hours.Owner)}")
        if form not in ("json", "csv"):
            raise invalid("form", "must be json or csv")
        end = moment(params, "to") or now
        begin = moment(params, "from") or end - _DEFAULT
        shares = hours.read(hours.Owner(by), begin, end, now, access.visible_namespaces(request.user))
        rows = [_row(share) for share in shares]
        if form == "csv":
            return _as_csv(rows, by)
        return Response(GpuHoursAnswerSerializer({"by": by, "start": begin, "end": end, "results": rows}).data)


def _row(share: hours.Share) -> dict[str, Any]:
    used, held = share.time.used_ms, share.time.held_ms
    amounts = (round(used / _HOUR_MS, 6), round(held / _HOUR_MS, 6), used / 1000, held / 1000, share.time.runs)
    return dict(zip(_COLUMNS, (share.name, *amounts), strict=True))


def _as_csv(rows: Sequence[dict[str, Any]], by: str) -> HttpResponse:
    writer = csv.writer(Line())
    lines = [[by, *_COLUMNS[1:]], *([plain(row[column]) for column in _COLUMNS] for row in rows)]
    answer = HttpResponse("".join(map(writer.writerow, lines)), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="gpu-hours-by-{by}.csv"'
    return answer
