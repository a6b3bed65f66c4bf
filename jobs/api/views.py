"""Jobs, policies, bindings and dependents over REST: parse, authorise, call one service, render."""

from functools import partial
from typing import Any

import django_filters
from django.db.models import Count, Prefetch, QuerySet, Sum
from django.http import HttpResponseBase
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.filters import SearchFilter
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.clusters import visible
from fleet.api.http import auditing
from fleet.api.http.permissions import ByRole, Guarded
from fleet.api.serializers import EventSerializer
from fleet.api.sign_in.authentication import user_of_now
from fleet.db import clock
from fleet.models import EndedPod, Event, Pod
from fleet.services.authorization import access
from jobs import queries
from jobs.api.export import ExportQuery, as_file
from jobs.api.inspect.history import CopySerializer, TimelineSerializer, shown
from jobs.api.inspect.logs import LogsQuery, log_of
from jobs.api.inspect.runtime import RuntimeSerializer
from jobs.api.inspect.stacks import StacksSerializer
from jobs.api.listing import (
    AsPlainText,
    GroupsQuery,
    GroupsSerializer,
    JobFilter,
    JobPages,
    SteadyOrder,
)
from jobs.api.pods import EndedPodSerializer, PodSerializer
from jobs.api.serializers import (
    AttemptSerializer,
    BindingSerializer,
    DependentSerializer,
    JobDetailSerializer,
    JobSerializer,
    PolicySerializer,
    ResizeSerializer,
)
from jobs.models import Attempt, Binding, Dependent, Job, Policy
from jobs.services.inspect import history, logs, runtime, stacks
from jobs.services.submission.changes import actions, resizing

UID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_HEAVY = ("manifest", "status", "waited", "waited_codes")
_ID = OpenApiParameter("id", OpenApiTypes.UUID, OpenApiParameter.PATH)


class JobViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Job]):
    kind = "Job"
    verbs = {"destroy": "delete", "suspend": "suspend", "resume": "resume", "resize": "apply"}
    permission_classes = [ByRole]
    serializer_class = JobSerializer
    filterset_class = JobFilter
    filter_backends = [DjangoFilterBackend, SearchFilter, SteadyOrder]
    pagination_class = JobPages
    lookup_field = "uid"
    lookup_url_kwarg = "id"
    lookup_value_regex = UID
    search_fields = ["name", "namespace"]
    ordering_fields = ["created_at", "name", "namespace", "state", "priority", "gpus", "started_at", "finished_at"]
    ordering = ["-created_at", "-id"]

    def get_queryset(self) -> QuerySet[Job]:
        return visible(self.shown(Job.objects.all()), self.request.user)

    def shown(self, rows: QuerySet[Job]) -> QuerySet[Job]:
        """With what a job's JSON needs of others, and in lists without what it does not show."""
        times = Attempt.objects.only("job_id", "started_at", "ended_at").order_by()
        rows = rows.select_related("cluster", "policy", "progress").prefetch_related(Prefetch("attempts", times))
        rows = rows.defer("cluster__access", "cluster__apis", "policy__manifest")
        return rows.defer("cluster__access", *_HEAVY) if self.action == "list" else rows

    @extend_schema(responses=JobDetailSerializer, parameters=[_ID])
    def retrieve(self, request: Request, id: str) -> Response:
        return Response(self._fresh())

    @extend_schema(responses={202: JobDetailSerializer}, parameters=[_ID])
    def destroy(self, request: Request, id: str) -> Response:
        """The job stays visible, with ``deleting_at``, until its copies are gone from the members."""
        job = self.get_object()
        shown = self._whole(job)
        now = clock.now()
        gone = actions.delete(job, by=request.user.get_username(), now=now)
        return Response({**shown, "deleting_at": now} if gone else self._fresh(), status=202)

    @extend_schema(request=None, responses={202: JobDetailSerializer}, parameters=[_ID])
    @action(detail=True, methods=["post"])
    def suspend(self, request: Request, id: str) -> Response:
        actions.suspend(self.get_object(), by=request.user.get_username(), now=clock.now())
        return Response(self._fresh(), status=202)

    @extend_schema(request=None, responses={202: JobDetailSerializer}, parameters=[_ID])
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, id: str) -> Response:
        actions.resume(self.get_object(), by=request.user.get_username(), now=clock.now())
        return Response(self._fresh(), status=202)

    @extend_schema(request=ResizeSerializer, responses={202: JobDetailSerializer}, parameters=[_ID])
    @action(detail=True, methods=["post"])
    def resize(self, request: Request, id: str) -> Response:
        """Gives a running job another number of pods. Fewer at once; more when its quota and its cluster have room."""
        job, asked = self.get_object(), ResizeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = {asked.validated_data["role"]: asked.validated_data["replicas"]}
        resizing.resize(job, wanted, by=request.user.get_username(), now=clock.now())
        return Response(self._fresh(), status=202)

    @extend_schema(parameters=[GroupsQuery], responses=GroupsSerializer)
    @action(detail=False, pagination_class=None)
    def groups(self, request: Request) -> Response:
        """How many of the jobs that match there are of each state, queue, label ...: the largest groups first."""
        query = GroupsQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        by = query.validated_data["by"]
        groups = queries.groups(self.filter_queryset(self.get_queryset()), by)
        total = sum(each.count for each in groups)
        return Response(GroupsSerializer({"by": by, "count": total, "results": groups}).data)

    @extend_schema(
        parameters=[ExportQuery],
        responses={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
            (200, "application/json"): OpenApiResponse(OpenApiTypes.ANY),
        },
    )
    @action(detail=False, pagination_class=None, content_negotiation_class=AsPlainText)
    def export(self, request: Request) -> HttpResponseBase:
        """The jobs that match, in their order, as a file: comma-separated values or JSON."""
        query = ExportQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        rows = self.filter_queryset(self.get_queryset())
        return as_file(request._request, rows, query.validated_data["form"], partial(_still_readable, request))

    @extend_schema(responses=EventSerializer(many=True), filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[])
    def events(self, request: Request, id: str) -> Response:
        """The job's timeline, oldest first."""
        rows = Event.objects.filter(regarding_uid=str(self.get_object().uid)).order_by("last_at", "id")
        return self._paged(rows, EventSerializer)

    @extend_schema(responses=AttemptSerializer(many=True), filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[])
    def attempts(self, request: Request, id: str) -> Response:
        return self._paged(self.get_object().attempts.order_by("number"), AttemptSerializer)

    @extend_schema(responses=TimelineSerializer, filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[], pagination_class=None)
    def timeline(self, request: Request, id: str) -> Response:
        """Whose hands the job was in from submitted to done, and which gates it has passed."""
        return Response(shown(history.timeline_of(self.get_object(), clock.now())))

    @extend_schema(responses=RuntimeSerializer, filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[], pagination_class=None)
    def runtime(self, request: Request, id: str) -> Response:
        """What torchrun or dlrover says in the logs of the job's pods, read from the members now."""
        return Response(RuntimeSerializer(runtime.of_job(self.get_object(), request.user)).data)

    @extend_schema(responses=StacksSerializer, filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[], pagination_class=None)
    def stacks(self, request: Request, id: str) -> Response:
        """The stacks that faulthandler or py-spy printed in the logs of the job's pods, merged; read from the members now."""
        job = self.get_object()
        auditing.read(request, f"{job.kind}/log", job.namespace, job.name)
        return Response(StacksSerializer(stacks.of_job(job, request.user)).data)

    @extend_schema(responses=CopySerializer, filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[], pagination_class=None)
    def copy(self, request: Request, id: str) -> Response:
        """The job's copy in its member now, read from the member."""
        return Response(CopySerializer(history.copy(self.get_object())).data)

    @extend_schema(responses=PodSerializer(many=True), filters=False, parameters=[_ID])
    @action(detail=True, filter_backends=[])
    def pods(self, request: Request, id: str) -> Response:
        """Pods of all attempts that still exist in a member."""
        rows = Pod.objects.filter(job_uid=self.get_object().uid).select_related("cluster").defer("cluster__access")
        return self._paged(rows.order_by("-attempt", "role", "index", "name"), PodSerializer)

    @extend_schema(responses=EndedPodSerializer(many=True), filters=False, parameters=[_ID])
    @action(detail=True, url_path="ended-pods", filter_backends=[])
    def ended_pods(self, request: Request, id: str) -> Response:
        """Pods of all attempts that have ended, and whether their logs are kept; also of those that are gone."""
        rows = EndedPod.objects.filter(job_uid=self.get_object().uid).annotate(log_bytes=Sum("logs__text_bytes"))
        return self._paged(rows.order_by("-attempt", "role", "index", "-ended_at", "-pk"), EndedPodSerializer)

    @extend_schema(
        parameters=[_ID, LogsQuery],
        responses={(200, "text/plain"): OpenApiResponse(OpenApiTypes.STR)},
        filters=False,
    )
    @action(detail=True, filter_backends=[], pagination_class=None, content_negotiation_class=AsPlainText)
    def logs(self, request: Request, id: str) -> HttpResponseBase:
        """One pod's log, by default the chief's; with ``follow``, as long as it is written."""
        job = self.get_object()
        query = LogsQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        auditing.read(request, f"{job.kind}/log", job.namespace, job.name)
        may_go_on = partial(_may_still_read, request, job.namespace)
        return log_of(request, job, logs.Query(**query.validated_data), may_go_on)

    def _whole(self, job: Job) -> Any:
        return JobDetailSerializer(job, context=self.get_serializer_context()).data

    def _fresh(self) -> Any:
        return self._whole(self.get_object())

    def _paged(self, rows: QuerySet[Any], serializer: Any) -> Response:
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(serializer(page, many=True).data)


def _still_readable(request: Request, rows: QuerySet[Job]) -> QuerySet[Job]:
    user = user_of_now(request)
    return rows.none() if user is None else visible(rows, user)


def _may_still_read(request: Request, namespace: str) -> bool:
    user = user_of_now(request)
    return user is not None and access.may(user, access.READ, "Job", namespace)


class PolicyFilter(django_filters.FilterSet):
    kind = django_filters.CharFilter(lookup_expr="iexact")

    class Meta:
        model = Policy
        fields = ["namespace", "name", "kind"]


@extend_schema_view(retrieve=extend_schema(parameters=[_ID]))
class PolicyViewSet(Guarded, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Policy]):
    kind = "Policy"
    verbs = {"destroy": "delete"}
    permission_classes = [ByRole]
    serializer_class = PolicySerializer
    filterset_class = PolicyFilter
    lookup_field = "uid"
    lookup_url_kwarg = "id"
    lookup_value_regex = UID
    search_fields = ["name", "namespace"]
    ordering_fields = ["created_at", "name", "namespace"]
    ordering = ["namespace", "name"]

    def subject(self, obj: Any) -> tuple[str, str]:
        return obj.kind, obj.namespace

    def get_queryset(self) -> QuerySet[Policy]:
        return visible(Policy.objects.annotate(jobs_count=Count("jobs")), self.request.user, shared=True)

    @extend_schema(responses={204: None}, parameters=[_ID])
    def destroy(self, request: Request, id: str) -> Response:
        """Placed jobs run on; waiting ones wait for another policy."""
        actions.delete_policy(self.get_object(), by=request.user.get_username(), now=clock.now())
        return Response(status=204)


class BindingFilter(django_filters.FilterSet):
    namespace = django_filters.CharFilter(field_name="job__namespace")
    name = django_filters.CharFilter(field_name="job__name")
    cluster = django_filters.CharFilter(field_name="cluster__name")

    class Meta:
        model = Binding
        fields = ["namespace", "name", "cluster"]


class BindingViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Binding]):
    kind = "Binding"
    permission_classes = [ByRole]
    serializer_class = BindingSerializer
    filterset_class = BindingFilter
    search_fields = ["job__name", "job__namespace"]
    ordering_fields = ["scheduled_at", "job__name"]
    ordering = ["-scheduled_at", "-id"]

    def get_queryset(self) -> QuerySet[Binding]:
        rows = Binding.objects.select_related("job", "cluster")
        rows = rows.defer("cluster__access", *(f"job__{name}" for name in _HEAVY))
        return visible(rows, self.request.user, "job__namespace")


class DependentViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Dependent]):
    kind = "Dependent"
    verbs = {"destroy": "delete"}
    permission_classes = [ByRole]
    serializer_class = DependentSerializer
    filterset_fields = ["kind", "namespace", "name"]
    lookup_field = "uid"
    lookup_url_kwarg = "id"
    lookup_value_regex = UID
    search_fields = ["name"]
    ordering_fields = ["name", "namespace", "kind", "created_at"]
    ordering = ["namespace", "kind", "name"]

    def subject(self, obj: Any) -> tuple[str, str]:
        return (obj.kind if obj.kind in Dependent.CLUSTER_WIDE else self.kind), obj.namespace

    def get_queryset(self) -> QuerySet[Dependent]:
        return visible(Dependent.objects.defer("manifest"), self.request.user, shared=True)

    @extend_schema(responses={204: None}, parameters=[_ID])
    def destroy(self, request: Request, id: str) -> Response:
        actions.delete_dependent(self.get_object(), by=request.user.get_username(), now=clock.now())
        return Response(status=204)
