"""What the workloads of a namespace may ask for, over REST: everybody with a role reads it, a fleet admin changes it."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import ByRole, Guarded
from fleet.core.security.pod_security import Level
from fleet.db import clock
from fleet.models import NamespacePolicy
from fleet.services.authorization import namespace_policies


class NamespacePolicySerializer(serializers.ModelSerializer[NamespacePolicy]):
    pod_security = serializers.ChoiceField(
        [level.value for level in Level], default=namespace_policies.DEFAULT.level.value, help_text="Pod Security level"
    )
    service_accounts = serializers.ListField(
        child=serializers.CharField(max_length=253),
        default=list,
        help_text="the only ones allowed besides default; empty: any",
    )
    capabilities = serializers.ListField(
        child=serializers.CharField(max_length=63), default=list, help_text="allowed besides those of the level"
    )
    host_paths = serializers.ListField(
        child=serializers.CharField(max_length=512), default=list, help_text="folders of nodes that may be mounted"
    )
    host_network = serializers.BooleanField(default=False, help_text="whether pods may use the node's network")
    node_name = serializers.BooleanField(default=False, help_text="whether pods may name their node")

    class Meta:
        model = NamespacePolicy
        fields = (
            "name", "pod_security", "service_accounts", "capabilities", "host_paths", "host_network", "node_name",
            "updated_at",
        )  # fmt: skip
        read_only_fields = ("name", "updated_at")


class NamespacePolicyViewSet(Guarded, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """Of the namespaces that have a policy of their own; every other one has the defaults."""

    kind = namespace_policies.KIND
    verbs = {"update": "apply", "destroy": "delete"}
    permission_classes = [ByRole]
    queryset = NamespacePolicy.objects.all()
    serializer_class = NamespacePolicySerializer
    search_fields = ["name"]
    ordering_fields = ["name"]
    ordering = ["name"]
    filterset_fields = ["pod_security"]
    lookup_field = "name"
    lookup_value_regex = "[^/]+"

    def get_queryset(self) -> QuerySet[NamespacePolicy]:
        return NamespacePolicy.objects.all()

    @extend_schema(request=NamespacePolicySerializer, responses=NamespacePolicySerializer)
    def update(self, request: Request, name: str) -> Response:
        """Replaces the policy: what is left out is as in the defaults."""
        serializer = NamespacePolicySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = namespace_policies.save(name, serializer.validated_data, now=clock.now())
        return Response(NamespacePolicySerializer(row).data)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Request, name: str) -> Response:
        """Back to the defaults."""
        namespace_policies.remove(name, now=clock.now())
        return Response(status=204)
