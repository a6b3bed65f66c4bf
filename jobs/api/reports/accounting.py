"""Accounting over REST, as JSON or comma-separated values: GPU-hours by what became of them, goodput, waiting, cost."""

import csv
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
from jobs.core.explain.accounting import ATTEMPT, Sums
from jobs.core.explain.timeline import Owner as Waits
from jobs.services.series import accounting

_DEFAULT = timedelta(days=31)
_HOUR_MS = 3_600_000
_WAITS = tuple(owner for owner in Waits if owner not in ATTEMPT)


class AccountingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, help_text="empty: without a queue, user, cluster or model")
    gpu_hours = serializers.FloatField(
        help_text="from the placement of attempts to their end: the sum of the next five"
    )
    starting_gpu_hours = serializers.FloatField(help_text="from the placement until all pods ran")
    useful_gpu_hours = serializers.FloatField(help_text="running, in attempts that succeeded or go on")
    preempted_gpu_hours = serializers.FloatField(help_text="running, in attempts that were evicted")
    lost_gpu_hours = serializers.FloatField(
        help_text="running, in attempts that failed, were lost with their cluster or ran out of time"
    )
    stopped_gpu_hours = serializers.FloatField(help_text="running, in attempts that a user suspended or deleted")
    unsaved_gpu_hours = serializers.FloatField(
        help_text="of those preempted and lost, after the attempt last saved its work, where that is known"
    )
    unknown_gpu_hours = serializers.FloatField(
        help_text="of those preempted and lost, in attempts of which it is not known whether they saved their work"
    )
    goodput = serializers.FloatField(allow_null=True, help_text="useful_gpu_hours / gpu_hours; null: there are none")
    cost = serializers.FloatField(help_text="by the prices in the labels of clusters, in the operator's currency")
    unpriced_gpu_hours = serializers.FloatField(help_text="without a known price, and not in the cost")
    attempts = serializers.IntegerField()
    waited_hours = serializers.DictField(
        child=serializers.FloatField(), help_text=f"of jobs, by what held them up: {', '.join(_WAITS)}"
    )


class AccountingAnswerSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    results = AccountingSerializer(many=True)


class AccountingView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]
    content_negotiation_class = AsPlainText

    @extend_schema(
        operation_id="accounting",
        parameters=[
            OpenApiParameter("by", str, enum=[*accounting.Owner], description="a team is a namespace; default: team"),
            OpenApiParameter("from", OpenApiTypes.DATETIME, description="ISO 8601; default: 31 days before `to`"),
            OpenApiParameter("to", OpenApiTypes.DATETIME, description="ISO 8601; default: now"),
            OpenApiParameter("form", str, enum=["json", "csv"], description="default: json"),
        ],
        responses={
            (200, "application/json"): AccountingAnswerSerializer,
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 366 days, from the spans of all jobs that the caller may read, of deleted jobs as well."""
        params, now = request.query_params, clock.now()
        by, form = params.get("by") or accounting.Owner.TEAM, params.get("form") or "json"
        if by not in [*accounting.Owner]:
            raise invalid("by", f"must be one of {', '.join(accounting.Owner)}")
        if form not in ("json", "csv"):
            raise invalid("form", "must be json or csv")
        end = moment(params, "to") or now
        begin = moment(params, "from") or end - _DEFAULT
        sums = accounting.read(accounting.Owner(by), begin, end, now, access.visible_namespaces(request.user))
        rows = [_row(name, each) for name, each in sums]
        if form == "csv":
            return _as_csv(rows, by)
        return Response(AccountingAnswerSerializer({"by": by, "start": begin, "end": end, "results": rows}).data)


def _row(name: str, sums: Sums) -> dict[str, Any]:
    parts = ("starting", "useful", "preempted", "lost", "stopped")
    return {
        "name": name,
        "gpu_hours": _hours(sums.total),
        **{f"{part}_gpu_hours": _hours(getattr(sums, part)) for part in parts},
        "unsaved_gpu_hours": _hours(sums.unsaved),
        "unknown_gpu_hours": _hours(sums.unknown),
        "goodput": None if sums.goodput is None else round(sums.goodput, 6),
        "cost": round(sums.cost, 4),
        "unpriced_gpu_hours": _hours(sums.unpriced),
        "attempts": len(sums.attempts),
        "waited_hours": {owner.value: _hours(sums.waited.get(owner, 0)) for owner in _WAITS},
    }


def _hours(ms: int) -> float:
    return round(ms / _HOUR_MS, 6)


def _as_csv(rows: list[dict[str, Any]], by: str) -> HttpResponse:
    fields: list[str] = list(AccountingSerializer().get_fields())
    columns = [name for name in fields if name not in ("name", "waited_hours")]
    writer = csv.writer(Line())
    lines: list[list[Any]] = [[by, *columns, *(f"waited_{owner}_hours" for owner in _WAITS)]]
    for row in rows:
        cells = [row["name"], *(row[name] for name in columns), *row["waited_hours"].values()]
        lines.append([plain("" if cell is None else cell) for cell in cells])
    answer = HttpResponse("".join(map(writer.writerow, lines)), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="accounting-by-{by}.csv"'
    return answer
