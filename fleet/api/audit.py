"""The audit over REST, for fleet admins: who changed what, newest first; one line whole with its before and after."""

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, viewsets

from fleet.api.permissions import ByRole, Guarded
from fleet.models import AuditEntry


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

    def get_queryset(self) -> QuerySet[AuditEntry]:
        rows = AuditEntry.objects.all()
        return rows if self.action == "retrieve" else rows.defer("before", "after")

    def get_serializer_class(self) -> type[AuditLineSerializer]:
        return AuditEntrySerializer if self.action == "retrieve" else AuditLineSerializer
