"""The list of jobs over REST: narrowed, ordered, counted by group. What a job looks like is said elsewhere."""

from typing import Any

import django_filters
from django.db.models import F, QuerySet
from rest_framework import serializers
from rest_framework.filters import OrderingFilter
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from fleet.api.http.pagination import Pages
from fleet.errors import invalid
from fleet.kube.requests import selectors
from fleet.models import Cluster
from jobs import queries
from jobs.models import Job, Policy
from jobs.models.listed import Walked


class JobFilter(django_filters.FilterSet):
    state = django_filters.MultipleChoiceFilter(
        choices=[(state.value, state.value) for state in Job.State], method="among"
    )
    kind = django_filters.CharFilter(lookup_expr="iexact")
    group = django_filters.CharFilter(method="of_group", help_text="of the kind's API: batch, or batch.volcano.sh")
    namespace = django_filters.CharFilter(method="among")
    cluster = django_filters.CharFilter(method="on_cluster")
    policy = django_filters.CharFilter(method="by_policy")
    queue = django_filters.CharFilter(method="in_queue", help_text="the path of a node of the quota tree: all below it")
    reason = django_filters.CharFilter(field_name="reason_code", help_text="the code of what it waits for")
    user = django_filters.CharFilter(method="submitted", help_text="who submitted it")
    labels = django_filters.CharFilter(method="labelled", help_text="a label selector: team=vision,tier in (a,b),!old")

    class Meta:
        model = Job
        fields = [
            "namespace",
            "name",
            "state",
            "kind",
            "cluster",
            "policy",
            "queue",
            "reason",
            "user",
            "suspended",
            "labels",
        ]

    def of_group(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return rows.filter(group=f"{value}/")

    def among(self, rows: QuerySet[Job], name: str, value: str | list[str]) -> QuerySet[Job]:
        return queries.among(rows, name, [value] if isinstance(value, str) else value) if value else rows

    def on_cluster(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return queries.among(rows, "cluster_id", Cluster.objects.filter(name=value).values("pk"))

    def by_policy(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return queries.among(rows, "policy_id", Policy.objects.filter(name=value).values("pk"))

    def in_queue(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return queries.in_queue(rows, value)

    def submitted(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return rows.filter(submitted_by=value)

    def labelled(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        try:
            return queries.labelled(rows, selectors.parse_labels(value))
        except selectors.SelectorError as e:
            raise invalid("labels", f"{e}: write a label selector such as team=vision,tier in (a,b),!old") from e


class SteadyOrder(OrderingFilter):
    """Any order ends with the row's own number, so that no job is on two pages or on none."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """What is narrowed is found first and ordered then: along an order's own index every row would have to be read."""
        ordered = super().filter_queryset(request, queryset, view)
        first, *rest = map(str, ordered.query.order_by)
        if queryset.model is not Job or not queryset.query.where or first.lstrip("-") == "created_at":
            return ordered
        column = Walked(F(first.lstrip("-")))
        return ordered.order_by(column.desc() if first.startswith("-") else column.asc(), *rest)

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> list[str]:
        ordering = [*(super().get_ordering(request, queryset, view) or [])]
        return [*ordering, "-id" if ordering and ordering[0].startswith("-") else "id"]


class JobPages(Pages):
    """Finds a page by its keys alone first: rows with their manifests are read only for what is shown."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        if queryset.model is not Job:
            return super().paginate_queryset(queryset, request, view)
        keys: list[int] | None = super().paginate_queryset(queryset.values_list("pk", flat=True), request, view)
        if keys is None:
            return None
        rows_by_key = {row.pk: row for row in view.shown(Job.objects.filter(pk__in=keys))}
        return [rows_by_key[key] for key in keys if key in rows_by_key]


class GroupsQuery(serializers.Serializer[Any]):
    by = serializers.CharField(help_text=f"{', '.join(queries.BY)}, or label:KEY")

    def validate_by(self, by: str) -> str:
        if by in queries.BY or by.removeprefix(queries.LABEL) not in ("", by):
            return by
        raise serializers.ValidationError(f"{by} is none of {', '.join(queries.BY)}, label:KEY")


class GroupSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(allow_blank=True, help_text="empty: the jobs that have none")
    count = serializers.IntegerField()
    gpus = serializers.IntegerField()


class GroupsSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    count = serializers.IntegerField(help_text="jobs in all groups shown")
    results = GroupSerializer(many=True)


class AsPlainText(BaseContentNegotiation):
    """A log or a file is text whatever the reader says it accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type
