"""Accounting over REST, as JSON or comma-separated values: GPU-hours by what became of them, goodput, waiting, cost."""

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
from jobs.core.explain.accounting import ATTEMPT, Sums
from jobs.core.explain.timeline import Owner as Waits
from jobs.services.series import accounting

_DEFAULT = timedelta(days=31)
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
    waited_by_reason_hours = serializers.DictField(
        child=serializers.FloatField(),
        help_text="the same by the code of the job's reason, such as QuotaExceeded; Unknown: from before codes were kept",
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
        parameters=tables.parameters(accounting.Owner, _DEFAULT),
        responses={
            (200, "application/json"): AccountingAnswerSerializer,
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 366 days, from the spans of all jobs that the caller may read, of deleted jobs as well."""
        now = clock.now()
        asked = tables.read(request, accounting.Owner, _DEFAULT, now)
        sums = accounting.read(asked.by, asked.begin, asked.end, now, access.visible_namespaces(request.user))
        rows = [_row(name, each) for name, each in sums]
        if asked.as_csv:
            return _as_csv(rows, asked.by)
        return Response(
            AccountingAnswerSerializer({"by": asked.by, "start": asked.begin, "end": asked.end, "results": rows}).data
        )


def _row(name: str, sums: Sums) -> dict[str, Any]:
    parts = ("starting", "useful", "preempted", "lost", "stopped")
    return {
        "name": name,
        "gpu_hours": tables.hours(sums.total),
        **{f"{part}_gpu_hours": tables.hours(getattr(sums, part)) for part in parts},
        "unsaved_gpu_hours": tables.hours(sums.unsaved),
        "unknown_gpu_hours": tables.hours(sums.unknown),
        "goodput": None if sums.goodput is None else round(sums.goodput, 6),
        "cost": round(sums.cost, 4),
        "unpriced_gpu_hours": tables.hours(sums.unpriced),
        "attempts": len(sums.attempts),
        "waited_hours": {owner.value: tables.hours(sums.waited.get(owner, 0)) for owner in _WAITS},
        "waited_by_reason_hours": {code: tables.hours(ms) for code, ms in sorted(sums.reasons.items())},
    }


def _as_csv(rows: list[dict[str, Any]], by: str) -> HttpResponse:
    fields: list[str] = list(AccountingSerializer().get_fields())
    columns = [name for name in fields if name not in ("name", "waited_hours", "waited_by_reason_hours")]
    header = [by, *columns, *(f"waited_{owner}_hours" for owner in _WAITS)]
    cells = ([row["name"], *(row[name] for name in columns), *row["waited_hours"].values()] for row in rows)
    return tables.as_csv(header, cells, f"accounting-by-{by}")
