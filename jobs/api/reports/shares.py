"""What queues had used of late over REST, at moments of a time, beside what their weight entitles them to."""

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
from jobs.api.listing import AsPlainText
from jobs.api.reports import tables
from jobs.services.series import shares
from quotas import queries
from quotas.services import scopes

_DEFAULT = timedelta(days=7)


class QueueShareSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(allow_blank=True, help_text="empty: all queues of other teams below the node")
    node = serializers.CharField(help_text="path of the node whose children are compared")
    decides = serializers.BooleanField(help_text="whether children of the node are compared by this (OverTime)")
    weight = serializers.FloatField()
    entitled = serializers.FloatField(allow_null=True, help_text="weight by that of all children; null: they have none")
    gpu_hours = serializers.ListField(child=serializers.FloatField(), help_text="as they counted at each moment")
    shares = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="of the hours of all children; null: they had used nothing",
    )


class SharesSerializer(serializers.Serializer[Any]):
    half_life_s = serializers.FloatField(help_text="after so many seconds use counts half")
    earliest = serializers.DateTimeField(
        allow_null=True, help_text="use of deleted jobs is kept for begins from then on; null: there is no quota tree"
    )
    times = serializers.ListField(child=serializers.FloatField(), help_text="moments, in seconds since 1970")
    results = QueueShareSerializer(many=True, help_text="every node below the root, in the order of the tree")


class SharesView(Guarded, APIView):
    kind = "Queue"
    permission_classes = [ByRole]
    content_negotiation_class = AsPlainText

    @extend_schema(
        operation_id="shares",
        parameters=tables.period_parameters(_DEFAULT, " or `earliest`, whichever is later"),
        responses={(200, "application/json"): SharesSerializer, (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 92 days, by the weights of now. A caller who may not read all namespaces sees others' queues as one."""
        now = clock.now()
        period = tables.read_period(request, _DEFAULT, now, shares.earliest(now))
        tree = queries.tree()
        if tree is None:
            return Response(SharesSerializer({"half_life_s": 0, "earliest": None, "times": [], "results": []}).data)
        visible = scopes.visible_paths(request.user, tree)
        report = shares.read(tree, period.begin, period.end, now, visible)
        if period.as_csv:
            header = ["queue", "node", "at", "gpu_hours", "share", "entitled"]
            return tables.as_csv(header, _cells(report), "shares")
        rows = [
            {
                "path": row.path, "node": row.parent, "decides": row.parent in report.deciding, "weight": row.weight,
                "entitled": row.entitled, "gpu_hours": [round(each, 6) for each in row.hours], "shares": row.shares,
            }
            for row in report.rows
        ]  # fmt: skip
        answer = {
            "half_life_s": report.half_life_s,
            "earliest": shares.earliest(now),
            "times": report.times,
            "results": rows,
        }
        return Response(SharesSerializer(answer).data)


def _cells(report: shares.Report) -> list[list[Any]]:
    return [
        [row.path, row.parent, datetime.fromtimestamp(at, UTC).isoformat(), round(hours, 6), share, row.entitled]
        for row in report.rows
        for at, hours, share in zip(report.times, row.hours, row.shares, strict=True)
    ]
