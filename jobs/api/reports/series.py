"""Values over time over REST: GPUs used, held and free, quotas borrowed and lent, jobs waiting, started, ended, moved."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import invalid
from fleet.services.authorization import access
from jobs.core.series.catalogue import KEPT, STEPS, Dimension
from jobs.services.series import reading
from quotas.services import scopes

_KINDS = {
    Dimension.FLEET: "Cluster",
    Dimension.CLUSTER: "Cluster",
    Dimension.MODEL: "Node",
    Dimension.QUEUE: "Queue",
    Dimension.TEAM: "Job",
}
"""What the reader must be allowed to read."""
_DEFAULT = timedelta(hours=1)
_METRICS = "; ".join(f"by {by}: {', '.join(sorted(metrics))}" for by, metrics in KEPT.items())


class SeriesSerializer(serializers.Serializer[Any]):
    metric = serializers.CharField()
    name = serializers.CharField(help_text="of the cluster, GPU model, queue (its path) or team; empty: of the fleet")
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="one for each step from `from` on: what happened in it, or else the mean over it; null: not known",
    )


class SeriesAnswerSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    start = serializers.IntegerField(help_text="the beginning of the first step, in seconds since 1970")
    step = serializers.IntegerField(help_text="seconds")
    count = serializers.IntegerField(help_text="of values in each series")
    is_cut = serializers.BooleanField(help_text="whether there are more series than one answer holds; ask by `name`")
    series = SeriesSerializer(many=True)


class SeriesView(Guarded, APIView):
    permission_classes = [ByRole]

    @property
    def kind(self) -> str:  # type: ignore[override]  # it depends on what is asked for
        by = self.request.query_params.get("by", "")
        return next((kind for dimension, kind in _KINDS.items() if dimension == by), _KINDS[Dimension.FLEET])

    @extend_schema(
        operation_id="series",
        parameters=[
            OpenApiParameter("metric", str, required=True, description=f"one or more, separated by commas; {_METRICS}"),
            OpenApiParameter("by", str, enum=[*Dimension], description="a team is a namespace; default: fleet"),
            OpenApiParameter("name", str, description="of one; otherwise of all that the caller may see"),
            OpenApiParameter("from", datetime, description="ISO 8601 with a time zone; default: an hour before `to`"),
            OpenApiParameter("to", datetime, description="ISO 8601 with a time zone; default: now"),
            OpenApiParameter("step", int, enum=[*STEPS], description="seconds; default: the finest that fits"),
        ],
        responses=SeriesAnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """At most 1500 values of each series, and 30,000 in all."""
        params, now = request.query_params, clock.now()
        end = moment(params, "to") or now
        begin = moment(params, "from") or end - _DEFAULT
        by, name = params.get("by") or Dimension.FLEET, params.get("name")
        query = reading.ask(params.get("metric", ""), by, name, begin, end, params.get("step", ""))
        answer = reading.read(query, _visible(request, query, now), now)
        return Response(SeriesAnswerSerializer(_shown(answer)).data)


def _visible(request: Request, query: reading.Query, now: datetime) -> Iterable[str] | None:
    """Clusters and models are everybody's who reads the fleet; of teams one sees those one may read, and their queues."""
    if query.by is Dimension.QUEUE:
        begin, end = (datetime.fromtimestamp(at, UTC) for at in (query.begin, query.end))
        return scopes.visible_paths_between(request.user, begin, min(end, now), now, timedelta(seconds=query.step))
    return access.visible_namespaces(request.user) if query.by is Dimension.TEAM else None


def _shown(answer: reading.Answer) -> dict[str, Any]:
    query = answer.query
    return {
        "by": query.by,
        "start": query.begin,
        "step": query.step,
        "count": (query.end - query.begin) // query.step,
        "is_cut": answer.is_cut,
        "series": answer.series,
    }


def moment(params: Any, field: str) -> datetime | None:
    """A query parameter that is a moment with a time zone; None where it is not given."""
    text = params.get(field)
    if not text:
        return None
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not 1970 < at.year < 9000:
        raise invalid(field, "must be a moment such as 2026-03-01T12:00:00Z")
    return at.astimezone(UTC)
