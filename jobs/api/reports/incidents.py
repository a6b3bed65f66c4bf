"""Incidents over REST: a page of them, one as a whole story, and that story as a post-mortem in Markdown."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import NotFound
from fleet.services.authorization import access
from jobs.api.listing import AsPlainText
from jobs.api.serializers import ReasonSerializer
from jobs.api.views import UID
from jobs.core.failover.incident_story import Stage, Story, What, steps
from jobs.core.failover.incidents import IncidentKind
from jobs.core.failover.postmortem import render
from jobs.models import Incident
from jobs.services.inspect import incidents


class JobNameSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    namespace = serializers.CharField()
    name = serializers.CharField()


class IncidentSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField([(each.value, each.name) for each in IncidentKind])
    stage = serializers.ChoiceField(
        [(each.value, each.name) for each in Stage], help_text="Recovering: the cause is over, and jobs still wait"
    )
    cluster = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField(), help_text="that were lost")
    job = JobNameSerializer(allow_null=True, help_text="the job that it is about; null: not about a single job")
    reason = serializers.CharField(allow_blank=True, help_text="of an outage: the reason of the cluster's state")
    message = serializers.CharField(allow_blank=True)
    began_at = serializers.DateTimeField(help_text="the first signal")
    declared_at = serializers.DateTimeField(help_text="when the cluster was no longer Ready, or the attempt was closed")
    last_at = serializers.DateTimeField()
    over_at = serializers.DateTimeField(allow_null=True, help_text="when the cause was over; null: it lasts")
    jobs = serializers.IntegerField(help_text="that it stopped, of namespaces that the caller may read")
    other_jobs = serializers.IntegerField(help_text="that it stopped, of other namespaces")
    waiting = serializers.IntegerField(help_text="jobs that still wait for another attempt")


class StoppedJobSerializer(serializers.Serializer[Any]):
    job = JobNameSerializer()
    kind = serializers.CharField(help_text="of the job")
    gpus = serializers.IntegerField()
    attempt = serializers.IntegerField()
    cluster = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField()
    outcome = serializers.CharField()
    cause = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text="of the job, now")
    waits = serializers.BooleanField(help_text="for another attempt")
    reason = ReasonSerializer(allow_null=True, help_text="why it waits now")
    saved_step = serializers.IntegerField(allow_null=True, help_text="null: its program reported none")
    next_attempt = serializers.IntegerField(allow_null=True)
    next_cluster = serializers.CharField(allow_blank=True)
    next_placed_at = serializers.DateTimeField(allow_null=True)
    back_at = serializers.DateTimeField(allow_null=True, help_text="when all pods of the next attempt ran")
    stopped_s = serializers.FloatField(help_text="seconds in which it did not run because of the incident")
    ran_s = serializers.FloatField(help_text="seconds that the attempt had run: repeated, but for what was saved")


class StayingJobSerializer(serializers.Serializer[Any]):
    job = JobNameSerializer()
    gpus = serializers.IntegerField()
    leaves_at = serializers.DateTimeField(allow_null=True, help_text="null: it stays for as long as the outage lasts")


class IncidentStepSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    what = serializers.ChoiceField([(each.value, each.name) for each in What])
    job = JobNameSerializer(allow_null=True)
    cluster = serializers.CharField(allow_blank=True)
    attempt = serializers.IntegerField(allow_null=True)
    message = serializers.CharField(allow_blank=True)


class IncidentStorySerializer(IncidentSerializer):
    now = serializers.DateTimeField(help_text="the server's, up to which open times are counted")
    is_cut = serializers.BooleanField(help_text=f"whether there are more than {incidents.MOST} attempts or jobs")
    gpu_minutes_stopped = serializers.FloatField(help_text="GPUs of the listed attempts, while they were stopped")
    gpu_minutes_repeated = serializers.FloatField(help_text="which they had run: repeated, but for what was saved")
    affected = StoppedJobSerializer(many=True)
    staying = StayingJobSerializer(many=True, help_text="still on the cluster of an open outage")
    steps = IncidentStepSerializer(many=True, help_text="in order; LeavesAt is in the future")


class IncidentFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="cluster_name")
    open = django_filters.BooleanFilter(field_name="over_at", lookup_expr="isnull", help_text="whose cause lasts")
    namespace = django_filters.CharFilter(method="that_stopped", help_text="that stopped a job of the namespace")
    queue = django_filters.CharFilter(
        method="that_stopped", help_text="that stopped a job of the queue, or of one below it"
    )

    class Meta:
        model = Incident
        fields = ["kind", "cluster", "open", "namespace", "queue"]

    def that_stopped(self, rows: QuerySet[Incident], name: str, value: str) -> QuerySet[Incident]:
        return incidents.that_stopped(rows, self._allowed(), **{name: value})

    def _allowed(self) -> incidents.Namespaces:
        return frozenset() if self.request is None else access.visible_namespaces(self.request.user)


@extend_schema_view(list=extend_schema(summary="Incidents, the latest first"))
class IncidentViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Incident]):
    kind = "Event"
    permission_classes = [ByRole]
    serializer_class = IncidentSerializer
    filterset_class = IncidentFilter
    lookup_field = "uid"
    lookup_url_kwarg = "id"
    lookup_value_regex = UID
    ordering_fields = ["began_at", "last_at"]
    ordering = ["-began_at", "-id"]

    def get_queryset(self) -> QuerySet[Incident]:
        return incidents.visible(access.visible_namespaces(self.request.user))

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        allowed = access.visible_namespaces(self.request.user)
        return page if page is None else [_listed(*each) for each in incidents.counted(page, allowed)]

    @extend_schema(
        responses=IncidentStorySerializer,
        parameters=[OpenApiParameter("id", OpenApiTypes.UUID, OpenApiParameter.PATH)],
        summary="One incident, from its signal to the last job that runs again",
    )
    def retrieve(self, request: Request, id: str) -> Response:
        return Response(IncidentStorySerializer(_as_answer(*self._story(UUID(id)))).data)

    @extend_schema(
        responses={(200, "text/markdown"): OpenApiResponse(OpenApiTypes.STR)},
        parameters=[OpenApiParameter("id", OpenApiTypes.UUID, OpenApiParameter.PATH)],
        summary="One incident as a post-mortem in Markdown",
    )
    @action(detail=True, content_negotiation_class=AsPlainText)
    def postmortem(self, request: Request, id: str) -> HttpResponse:
        _, story = self._story(UUID(id))
        answer = HttpResponse(render(story), content_type="text/markdown; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="incident-{story.facts.uid}.md"'
        return answer

    def _story(self, uid: UUID) -> tuple[dict[str, Any], Story]:
        row = self.get_queryset().filter(uid=uid).first()
        if row is None:
            raise NotFound("there is no such incident")
        allowed = access.visible_namespaces(self.request.user)
        ((_, counts, job),) = incidents.counted([row], allowed)
        return _listed(row, counts, job), incidents.story(row, allowed, clock.now())


def _listed(row: Incident, counts: incidents.Counts, job: incidents.Name | None) -> dict[str, Any]:
    kept = ("kind", "nodes", "reason", "message", "began_at", "declared_at", "last_at", "over_at")
    shown = {name: getattr(row, name) for name in kept}
    stage = incidents.stage_of(row, counts)
    return {**shown, **asdict(counts), "id": row.uid, "cluster": row.cluster_name, "job": job, "stage": stage}


def _as_answer(listed: dict[str, Any], story: Story) -> dict[str, Any]:
    return {
        **listed,
        "now": story.now,
        "is_cut": story.is_cut,
        "gpu_minutes_stopped": story.gpu_minutes_stopped,
        "gpu_minutes_repeated": story.gpu_minutes_repeated,
        "affected": [_with_job(each) for each in story.affected],
        "staying": [_with_job(each) for each in story.staying],
        "steps": [_with_job(each) for each in steps(story)],
    }


def _with_job(each: Any) -> dict[str, Any]:
    return asdict(each) | {
        "job": {"id": each.job, "namespace": each.namespace, "name": each.name} if each.job else None
    }
