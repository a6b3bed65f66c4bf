"""Saved views of the console's lists over REST: one's own, and those that are shared."""

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import OfOneself
from fleet.db import clock
from fleet.models import SavedView
from fleet.services.operations import saved_views


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    user = serializers.CharField(source="user.username", read_only=True, help_text="who saved it")
    shared = serializers.BooleanField(source="is_shared", default=False)
    namespace = serializers.CharField(
        max_length=63, allow_blank=True, default="", help_text="whose readers see it; empty: everybody with a role"
    )
    list = serializers.CharField(max_length=16, help_text=", ".join(saved_views.LISTS))
    name = serializers.CharField(max_length=63)
    search = serializers.CharField(
        max_length=2000, allow_blank=True, help_text="the query part of the list's address in the console"
    )

    class Meta:
        model = SavedView
        fields = ("id", "list", "name", "search", "shared", "namespace", "user", "saved_at")
        read_only_fields = ("id", "user", "saved_at")


class SavedViewViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[SavedView]):
    """What lists are narrowed, ordered and grouped by, under a name."""

    kind = "SavedView"
    verbs = {"create": "apply", "destroy": "delete"}
    permission_classes = [OfOneself]
    serializer_class = SavedViewSerializer
    filterset_fields = ["list"]
    ordering_fields = ["name", "saved_at"]
    ordering = ["name", "id"]
    lookup_value_regex = "[0-9]+"

    def get_queryset(self) -> QuerySet[SavedView]:
        return saved_views.visible(self.request.user).select_related("user")

    @extend_schema(request=SavedViewSerializer, responses={201: SavedViewSerializer})
    def create(self, request: Request) -> Response:
        """Saves it; one of the same name and list of the same user is replaced."""
        body = SavedViewSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = saved_views.save(request.user, **body.validated_data, now=clock.now())
        return Response(SavedViewSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None}, parameters=[OpenApiParameter("id", int, OpenApiParameter.PATH)])
    def destroy(self, request: Request, pk: str) -> Response:
        saved_views.remove(request.user, min(int(pk), 2**62))
        return Response(status=204)
