"""Team leads over REST: listed, named and unnamed by those who may change the whole tree."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import ByRole, Guarded
from fleet.services.authorization import access
from quotas.models import QuotaGrant, QuotaTree
from quotas.services import scopes, team_leads

_LARGEST_ID = 2**62


class LeadSerializer(serializers.ModelSerializer[QuotaGrant]):
    user = serializers.CharField(source="user.username", max_length=150)
    path = serializers.CharField(max_length=700, help_text="the node they lead, as a full path: root/vision")

    class Meta:
        model = QuotaGrant
        fields = ("id", "user", "path")
        validators: list[Any] = []


class OfWholeTree(ByRole):
    """A team lead may change a part of the tree, and names no other lead."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if super().has_permission(request, view) and scopes.scope_of(request.user) != scopes.EVERYTHING:
            raise access.refusal(request.user, "apply", view.kind)
        return bool(request.user.is_authenticated)


class LeadViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[QuotaGrant]):
    """A user who changes the quota tree below one node."""

    kind = QuotaTree.kind
    verbs = {"create": "apply", "destroy": "apply"}
    permission_classes = [OfWholeTree]
    queryset = QuotaGrant.objects.select_related("user")
    serializer_class = LeadSerializer
    filterset_fields = {"user__username": ["exact"], "path": ["exact"]}
    search_fields = ["user__username", "path"]
    ordering_fields = ["user__username", "path"]
    ordering = ["path", "user__username"]
    lookup_value_regex = "[0-9]+"

    @extend_schema(request=LeadSerializer, responses={201: LeadSerializer})
    def create(self, request: Request) -> Response:
        serializer = LeadSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = team_leads.add_lead(serializer.validated_data["user"]["username"], serializer.validated_data["path"])
        return Response(LeadSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None}, parameters=[OpenApiParameter("id", int, OpenApiParameter.PATH)])
    def destroy(self, request: Request, pk: str) -> Response:
        team_leads.remove_lead(min(int(pk), _LARGEST_ID))
        return Response(status=204)
