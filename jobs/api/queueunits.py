"""Places in queues over REST: who stands where, behind whom and why; and a job moved to another queue."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.clusters import visible
from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.services.authorization import access
from jobs.api.serializers import visible_name
from jobs.api.views import UID
from jobs.models import Job
from jobs.services.scheduling.demand import estimates, queueing
from jobs.services.submission.changes import queue_moves
from quotas import queries

_ID = OpenApiParameter("id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="of the job")


class EstimateSerializer(serializers.Serializer[Any]):
    starts_at = serializers.DateTimeField()
    basis = serializers.CharField(help_text="what the guess rests on")


class QueueUnitSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="job.uid", help_text="of the job")
    kind = serializers.CharField(source="job.kind")
    namespace = serializers.CharField(source="job.namespace")
    name = serializers.CharField(source="job.name")
    queue = serializers.CharField(help_text="the full path of its leaf")
    phase = serializers.ChoiceField([each.value for each in queueing.Phase])
    position = serializers.IntegerField(
        allow_null=True, help_text="from 1, among those who wait; null: it does not wait"
    )
    ahead = serializers.CharField(allow_blank=True, help_text="the job directly before it that can start at all")
    blocker = serializers.CharField(allow_blank=True, help_text="the job whose wait holds up the queue")
    message = serializers.CharField(allow_blank=True)
    code = serializers.SerializerMethodField()
    attempts = serializers.IntegerField()
    priority = serializers.IntegerField(source="job.priority")
    preemptible = serializers.BooleanField(source="job.preemptible")
    request = serializers.DictField(source="job.total", child=serializers.IntegerField(), help_text="in whole units")
    charged = serializers.SerializerMethodField(help_text="whether its quota is in use for it")
    queued_at = serializers.DateTimeField(source="job.queued_at")
    estimate = serializers.SerializerMethodField(help_text="when it may start: a guess; null: nothing to go by")

    @extend_schema_field(EstimateSerializer(allow_null=True))
    def get_estimate(self, unit: queueing.QueueUnit) -> dict[str, Any] | None:
        estimate = estimates.estimate_of(unit.job, self.context["starts"]) if unit.position else None
        return {"starts_at": estimate.starts_at, "basis": estimate.message} if estimate else None

    def to_representation(self, unit: queueing.QueueUnit) -> dict[str, Any]:
        """Jobs of namespaces that the reader may not see have no name here."""
        sees = access.sees(self.context["request"].user)
        shown: dict[str, Any] = super().to_representation(unit)
        return {**shown, **{field: visible_name(shown[field], sees) for field in ("ahead", "blocker")}}

    def get_code(self, unit: queueing.QueueUnit) -> str:
        return str((unit.job.reason or {}).get("code", ""))

    def get_charged(self, unit: queueing.QueueUnit) -> bool:
        return unit.job.charge is not None


class MoveSerializer(serializers.Serializer[Any]):
    queue = serializers.CharField(max_length=700, help_text="the name of a queue, or the path of its leaf")


class QueueUnitQuery(serializers.Serializer[Any]):
    queue = serializers.CharField(required=False, default="", help_text="the name of a queue, or the path of its leaf")
    namespace = serializers.CharField(required=False, default="")
    phase = serializers.ChoiceField([each.value for each in queueing.Phase], required=False, default=None)


class QueueUnitViewSet(Guarded, viewsets.GenericViewSet[Job]):
    kind = "Job"
    verbs = {"move": "move"}
    permission_classes = [ByRole]
    serializer_class = QueueUnitSerializer
    lookup_field = "uid"
    lookup_url_kwarg = "id"
    lookup_value_regex = UID
    filter_backends = []

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "starts": estimates.estimated_starts(clock.now())}

    def get_queryset(self) -> QuerySet[Job]:
        return visible(queueing.units(), self.request.user)

    @extend_schema(parameters=[QueueUnitQuery], responses=QueueUnitSerializer(many=True))
    def list(self, request: Request) -> Response:
        """Queue by queue, in their order."""
        query = QueueUnitQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        parameters = query.validated_data
        leaf = (
            queries.queues().filter(name=parameters["queue"]).values_list("path", flat=True).first()
            or parameters["queue"]
        )
        phase = queueing.Phase(parameters["phase"]) if parameters["phase"] else None
        rows = queueing.units(leaf=leaf, namespace=parameters["namespace"], phase=phase)
        page = self.paginate_queryset(visible(rows, request.user))
        return self.get_paginated_response(self.get_serializer(queueing.describe(page or []), many=True).data)

    @extend_schema(parameters=[_ID])
    def retrieve(self, request: Request, id: str) -> Response:
        return Response(self._shown(self.get_object()))

    @extend_schema(request=MoveSerializer, responses=QueueUnitSerializer, parameters=[_ID])
    @action(detail=True, methods=["post"])
    def move(self, request: Request, id: str) -> Response:
        """To another queue, where it stays whatever its label and namespace say."""
        job = self.get_object()
        serializer = MoveSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by = request.user.get_username()
        return Response(self._shown(queue_moves.move(job, serializer.validated_data["queue"], by=by, now=clock.now())))

    def _shown(self, job: Job) -> Any:
        return self.get_serializer(queueing.describe([job])[0]).data
