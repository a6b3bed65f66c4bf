"""The audit over REST, for fleet admins: who changed what, newest first; one line whole with its before and after."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import ByRole, Guarded
from fleet.models import AuditEntry
from fleet.services.auditing import audit_chain, audit_sinks

_AT_ONCE = 500
_LARGEST_EXPORT = 4 * 1024 * 1024
"""Of one answer, give or take the last lines."""


class AuditLineSerializer(serializers.ModelSerializer[AuditEntry]):
    class Meta:
        model = AuditEntry
        fields: tuple[str, ...] = (
            "id", "at", "actor", "door", "address", "verb", "request",
            "cluster", "kind", "namespace", "name", "uid", "outcome", "message",
        )  # fmt: skip


class AuditEntrySerializer(AuditLineSerializer):
    before = serializers.DictField(allow_null=True, help_text="the fields that changed, as they were")
    after = serializers.DictField(allow_null=True)

    class Meta(AuditLineSerializer.Meta):
        fields = (*AuditLineSerializer.Meta.fields, "before", "after")


class ExportQuery(serializers.Serializer[Any]):
    after = serializers.IntegerField(
        min_value=0, max_value=2**62, default=0, help_text="only lines behind this place in the chain"
    )


class VerificationSerializer(serializers.Serializer[Any]):
    lines = serializers.IntegerField(help_text="compared")
    last = serializers.IntegerField(help_text="place in the chain of the last of them")
    fault = serializers.CharField(help_text="where the chain is broken; empty: it is whole")
    unlinked = serializers.IntegerField(help_text="lines that are not in the chain yet")


class AsLines(BaseContentNegotiation):
    """Lines of JSON, whatever the caller accepts; refusals are problem details."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class AuditFilter(django_filters.FilterSet):
    kind = django_filters.CharFilter(lookup_expr="iexact")
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = AuditEntry
        fields = ["actor", "door", "verb", "cluster", "kind", "namespace", "name", "uid", "outcome"]


@extend_schema_view(retrieve=extend_schema(parameters=[OpenApiParameter("id", int, OpenApiParameter.PATH)]))
class AuditViewSet(Guarded, viewsets.ReadOnlyModelViewSet[AuditEntry]):
    kind = "Audit"
    permission_classes = [ByRole]
    filterset_class = AuditFilter
    search_fields = ["name", "message", "request"]
    ordering_fields = ["at", "actor"]
    ordering = ["-id"]
    lookup_value_regex = "[0-9]{1,18}"

    @extend_schema(parameters=[ExportQuery], responses={(200, "application/x-ndjson"): OpenApiTypes.STR}, filters=False)
    @action(detail=False, filter_backends=[], pagination_class=None, content_negotiation_class=AsLines)
    def export(self, request: Request) -> HttpResponse:
        """Lines of the chain as JSON, in order, as many as one answer takes: ``seq`` of the last is the next ``after``."""
        query = ExportQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        seq, parts, size = query.validated_data["after"], list[str](), 0
        while size < _LARGEST_EXPORT and (rows := audit_chain.after(seq, _AT_ONCE)):
            parts += [f"{audit_sinks.line(row)}\n" for row in rows]
            seq, size = rows[-1].seq or seq, size + sum(map(len, parts[-len(rows) :]))
        return HttpResponse("".join(parts), content_type="application/x-ndjson")

    @extend_schema(request=None, responses=VerificationSerializer, filters=False)
    @action(detail=False, filter_backends=[], pagination_class=None)
    def verification(self, request: Request) -> Response:
        """Whether the chain is whole."""
        return Response(VerificationSerializer(audit_chain.verify()).data)

    def get_queryset(self) -> QuerySet[AuditEntry]:
        rows = AuditEntry.objects.all()
        return rows if self.action == "retrieve" else rows.defer("before", "after")

    def get_serializer_class(self) -> type[AuditLineSerializer]:
        return AuditEntrySerializer if self.action == "retrieve" else AuditLineSerializer
