"""Goodput over REST, as JSON or comma-separated values: of the fleet by what it was lost to, and of one job by attempt."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.clusters import visible
from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import NotFound
from fleet.services.authorization import access
from jobs.api.listing import AsPlainText
from jobs.api.reports import tables
from jobs.core.explain.goodput import Part, Times
from jobs.models import Job
from jobs.services.series import goodput

_DEFAULT = timedelta(days=7)
_PARTS = ", ".join(Part)


class TimesSerializer(serializers.Serializer[Any]):
    seconds = serializers.DictField(
        child=serializers.FloatField(), help_text=f"of jobs, by what became of them: {_PARTS}"
    )
    gpu_hours = serializers.DictField(child=serializers.FloatField(), help_text="those times the GPUs of each job")
    ettr = serializers.FloatField(
        allow_null=True, help_text="productive share of the time since the first placement; null: there was none"
    )
    failures = serializers.IntegerField(help_text="attempts that failed or were lost with their cluster")
    mtbf_hours = serializers.FloatField(
        allow_null=True,
        help_text="hours that jobs ran for each failure; of a node, hours of the time that was asked for; null: no failure",
    )


class GoodputRowSerializer(TimesSerializer):
    name = serializers.CharField(allow_blank=True, help_text="of a node CLUSTER/NODE, of a deleted job its uid")


class GoodputSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    results = GoodputRowSerializer(many=True, help_text="what cost most GPU-hours first")


class AttemptGoodputSerializer(TimesSerializer):
    attempt = serializers.IntegerField()
    cluster = serializers.CharField()
    outcome = serializers.CharField(allow_blank=True, help_text="empty: it goes on")
    category = serializers.CharField(allow_blank=True, help_text="class of what cut it short; empty: nothing did")


class JobGoodputSerializer(serializers.Serializer[Any]):
    attempts = AttemptGoodputSerializer(many=True)
    total = TimesSerializer()


class GoodputView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]
    content_negotiation_class = AsPlainText

    @extend_schema(
        operation_id="goodput",
        parameters=tables.parameters(goodput.Owner, _DEFAULT),
        responses={
            (200, "application/json"): GoodputSerializer,
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Of at most 92 days, from all jobs that the caller may read. By class, node and job: what cost GPU-hours."""
        now = clock.now()
        asked = tables.read(request, goodput.Owner, _DEFAULT, now)
        sums = goodput.read(asked.by, asked.begin, asked.end, now, access.visible_namespaces(request.user))
        rows = [{"name": name, **_shown(times, mtbf)} for name, times, mtbf in sums]
        if asked.as_csv:
            return _as_csv(rows, asked.by)
        return Response(
            GoodputSerializer({"by": asked.by, "start": asked.begin, "end": asked.end, "results": rows}).data
        )


class JobGoodputView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(operation_id="job_goodput", responses=JobGoodputSerializer, summary="What became of a job's time")
    def get(self, request: Request, id: UUID) -> Response:
        """What became of the time of each attempt of the job."""
        job = visible(Job.objects.all(), request.user).filter(uid=id).first()
        if job is None:
            raise NotFound("there is no such job")
        self.check_object_permissions(request, job)
        attempts, total = goodput.of_job(job, clock.now())
        rows = [
            {
                "attempt": attempt.number, "cluster": attempt.cluster_name, "outcome": attempt.outcome,
                "category": stop.category if stop else "", **_shown(times, times.mtbf_ms),
            }
            for attempt, times, stop in attempts
        ]  # fmt: skip
        return Response(JobGoodputSerializer({"attempts": rows, "total": _shown(total, total.mtbf_ms)}).data)


def _shown(times: Times, mtbf_ms: float | None) -> dict[str, Any]:
    return {
        "seconds": {part.value: round(times.ms.get(part, 0) / 1000, 3) for part in Part},
        "gpu_hours": {part.value: tables.hours(times.gpu_ms.get(part, 0)) for part in Part},
        "ettr": None if times.ettr is None else round(times.ettr, 6),
        "failures": times.failures,
        "mtbf_hours": None if mtbf_ms is None else round(mtbf_ms / 3_600_000, 6),
    }


def _as_csv(rows: list[dict[str, Any]], by: str) -> HttpResponse:
    header = [
        by,
        *(f"{part}_s" for part in Part),
        *(f"{part}_gpu_hours" for part in Part),
        "ettr",
        "failures",
        "mtbf_hours",
    ]
    cells = (
        [
            row["name"],
            *row["seconds"].values(),
            *row["gpu_hours"].values(),
            row["ettr"],
            row["failures"],
            row["mtbf_hours"],
        ]
        for row in rows
    )
    return tables.as_csv(header, cells, f"goodput-by-{by}")
