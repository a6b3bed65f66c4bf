"""Waits for a place over REST, as JSON or comma-separated values: percentiles of a time and of its steps."""

from datetime import UTC, datetime, timedelta
from typing import Any

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
from jobs.core.explain.waits import Percentiles
from jobs.services.series import waits

_DEFAULT = timedelta(days=7)


class PercentilesSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="waits that ended with a placement; of a reason, those that had it")
    p50_s = serializers.FloatField(
        allow_null=True, help_text="seconds that half of them lasted at most; null: there were none"
    )
    p95_s = serializers.FloatField(allow_null=True)


class WaitsRowSerializer(PercentilesSerializer):
    name = serializers.CharField(allow_blank=True, help_text="empty: without a queue or model")
    waiting = serializers.IntegerField(
        help_text="jobs that wait yet at the end of the time, and count in no percentile"
    )
    longest_s = serializers.FloatField(help_text="how long the first of them has waited")
    trend = PercentilesSerializer(many=True, help_text="the same of each step")


class WaitsSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    start = serializers.IntegerField(help_text="the beginning of the first step, in seconds since 1970")
    step = serializers.IntegerField(help_text="seconds")
    results = WaitsRowSerializer(many=True, help_text="what waited most first")


class WaitsView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]
    content_negotiation_class = AsPlainText

    @extend_schema(
        operation_id="waits",
        parameters=tables.parameters(waits.Owner, _DEFAULT),
        responses={(200, "application/json"): WaitsSerializer, (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 92 days, from all jobs that the caller may read, of deleted jobs as well."""
        now = clock.now()
        asked = tables.read(request, waits.Owner, _DEFAULT, now)
        report = waits.read(asked.by, asked.begin, asked.end, now, access.visible_namespaces(request.user))
        rows = [
            {
                "name": row.name, **_shown(row.whole), "waiting": row.waiting, "longest_s": row.longest / 1000,
                "trend": [_shown(each) for each in row.trend],
            }
            for row in report.rows
        ]  # fmt: skip
        if asked.as_csv:
            header = [asked.by, "from", "count", "p50_s", "p95_s"]
            cells = [[row["name"], "", *_values(row)] for row in rows]
            cells += [
                [row["name"], _at(report.begin + place * report.step), *_values(each)]
                for row in rows
                for place, each in enumerate(row["trend"])
                if each["count"]
            ]
            return tables.as_csv(header, cells, f"waits-by-{asked.by}")
        answer = {"by": asked.by, "start": report.begin, "step": report.step, "results": rows}
        return Response(WaitsSerializer(answer).data)


def _shown(of: Percentiles | None) -> dict[str, Any]:
    if of is None:
        return {"count": 0, "p50_s": None, "p95_s": None}
    return {"count": of.count, "p50_s": of.p50 / 1000, "p95_s": of.p95 / 1000}


def _values(row: dict[str, Any]) -> list[Any]:
    return [row["count"], row["p50_s"], row["p95_s"]]


def _at(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
