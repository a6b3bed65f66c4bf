"""Which queues lent GPU-hours to which over REST, as JSON or comma-separated values."""

from datetime import timedelta
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
from jobs.api.listing import AsPlainText
from jobs.api.reports import tables
from jobs.services.series import lending
from quotas.services import scopes

_DEFAULT = timedelta(days=7)
_COLUMNS = ["node", "lender", "borrower", "gpu_hours"]


class FlowSerializer(serializers.Serializer[Any]):
    node = serializers.CharField(help_text="path of the node whose children they are")
    lender = serializers.CharField(
        allow_blank=True,
        help_text="path; that of the node: what no child's min contains, or the node borrows; empty: other teams",
    )
    borrower = serializers.CharField(
        allow_blank=True, help_text="path; that of the node: what is used beyond it; empty: other teams"
    )
    gpu_hours = serializers.FloatField()


class LendingSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    without_tree_hours = serializers.FloatField(help_text="hours of the time in which no quota tree was in force")
    results = FlowSerializer(many=True, help_text="the most first")


class LendingView(Guarded, APIView):
    kind = "Queue"
    permission_classes = [ByRole]
    content_negotiation_class = AsPlainText

    @extend_schema(
        operation_id="lending",
        parameters=tables.period_parameters(_DEFAULT),
        responses={(200, "application/json"): LendingSerializer, (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 31 days. A caller who may not read all namespaces sees the own queues by name, all others as one.

        A queue is their own if in no tree of the time one of its name was another team's, whatever is in force now.
        """
        now = clock.now()
        period = tables.read_period(request, _DEFAULT, now)
        visible = scopes.visible_paths_between(request.user, period.begin, min(period.end, now), now)
        report = lending.read(period.begin, period.end, now, visible)
        rows = [dict(zip(_COLUMNS, (*flow, tables.hours(round(amount))), strict=True)) for flow, amount in report.flows]
        if period.as_csv:
            return tables.as_csv(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows), "lending")
        answer = {
            "start": period.begin, "end": period.end, "without_tree_hours": tables.hours(report.without_tree),
            "results": rows,
        }  # fmt: skip
        return Response(LendingSerializer(answer).data)
