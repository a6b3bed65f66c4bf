"""Clusters, their nodes and the fleet's events over REST: parse, authorise, call one service, render."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet import queries
from fleet.api import supply
from fleet.api.http.permissions import ByRole, Guarded
from fleet.api.serializers import (
    AddonSerializer,
    ChecksSerializer,
    ClusterChangeSerializer,
    ClusterDetailSerializer,
    ClusterSerializer,
    CredentialsSerializer,
    DrainNodeSerializer,
    EventSerializer,
    ImpersonationSerializer,
    InstallSerializer,
    JoinSerializer,
    NodeLabelsSerializer,
    NodeSerializer,
    ReclaimSerializer,
    ShortLivedTokensSerializer,
)
from fleet.db import clock
from fleet.errors import NotFound
from fleet.models import Cluster, Event, Node, NodeExclusion
from fleet.services.authorization import access
from fleet.services.clusters import clusters, join_preflight, member_tokens, node_exclusions, node_labels, rehearsing
from fleet.services.members import member_addons


@extend_schema_view(list=extend_schema(summary="Clusters, with what they have and have left"))
class ClusterViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Cluster]):
    kind = "Cluster"
    verbs = {
        "create": "join",
        "check": "join",
        "credentials": "join",
        "impersonation": "join",
        "short_lived_tokens": "join",
        "destroy": "detach",
        "partial_update": "label",
        "node": "label",
        "cordon": "cordon",
        "uncordon": "cordon",
        "drain": "cordon",
        "silence": "cordon",
        "revive": "cordon",
        "cordon_node": "cordon",
        "uncordon_node": "cordon",
        "drain_node": "cordon",
        "reclaim": "cordon",
        "give_back": "cordon",
        "install": "join",
    }
    permission_classes = [ByRole]
    queryset = Cluster.objects.defer("access")
    serializer_class = ClusterSerializer
    lookup_field = "name"
    lookup_value_regex = "[^/]+"
    filterset_fields = ["state", "cordoned", "region", "zone", "provider", "name"]
    search_fields = ["name", "provider", "region", "zone"]
    ordering_fields = ["name", "state", "joined_at", "last_heartbeat"]
    ordering = ["name"]

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        return page if page is None else supply.attach(page)

    @extend_schema(responses=ClusterDetailSerializer)
    def retrieve(self, request: Request, name: str) -> Response:
        return self._shown(self.get_object())

    @extend_schema(request=JoinSerializer, responses={201: ClusterDetailSerializer}, summary="Join a member")
    def create(self, request: Request) -> Response:
        serializer = JoinSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wanted = serializer.validated_data
        joined = clusters.join(
            wanted["name"],
            wanted["kubeconfig"],
            context=wanted["context"],
            labels=wanted.get("labels"),
            by=request.user.get_username(),
            now=clock.now(),
        )
        return self._shown(joined, status=201)

    @extend_schema(request=JoinSerializer, responses=ChecksSerializer, summary="Look at a member before it joins")
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        """One check after the other, up to the first that fails; nothing is kept."""
        serializer = JoinSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wanted = serializer.validated_data
        checks = join_preflight.examine(wanted["name"], wanted["kubeconfig"], wanted["context"])
        return Response(ChecksSerializer({"ok": all(each.ok for each in checks), "checks": checks}).data)

    @extend_schema(request=ClusterChangeSerializer, responses=ClusterDetailSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        cluster = self.get_object()
        serializer = ClusterChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, now = request.user.get_username(), clock.now()
        if "labels" in serializer.validated_data:
            clusters.set_labels(cluster, serializer.validated_data["labels"], by=by, now=now)
        if "taints" in serializer.validated_data:
            clusters.set_taints(cluster, [dict(t) for t in serializer.validated_data["taints"]], by=by, now=now)
        return self._shown(cluster)

    @extend_schema(
        request=None,
        responses={204: None},
        summary="Detach a member",
        parameters=[OpenApiParameter("force", bool, description="even when jobs are there")],
    )
    def destroy(self, request: Request, name: str) -> Response:
        force = flag(request, "force")
        clusters.detach(self.get_object(), by=request.user.get_username(), now=clock.now(), force=force)
        return Response(status=204)

    @extend_schema(
        request=CredentialsSerializer, responses=ClusterDetailSerializer, summary="Renew a member's credentials"
    )
    @action(detail=True, methods=["put"])
    def credentials(self, request: Request, name: str) -> Response:
        """A new kubeconfig for the same cluster, which stays a member; its jobs run on."""
        cluster, body = self.get_object(), CredentialsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        text, context = body.validated_data["kubeconfig"], body.validated_data["context"]
        clusters.renew(cluster, text, context=context, by=request.user.get_username(), now=clock.now())
        return self._shown(cluster)

    @extend_schema(
        request=ImpersonationSerializer,
        responses=ClusterDetailSerializer,
        summary="Ask a member in the names of persons",
    )
    @action(detail=True, methods=["put"])
    def impersonation(self, request: Request, name: str) -> Response:
        """Refused with the rights that the fleet's account lacks in the member."""
        cluster, body = self.get_object(), ImpersonationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        by, now = request.user.get_username(), clock.now()
        clusters.set_impersonation(cluster, body.validated_data["on"], by=by, now=now)
        return self._shown(cluster)

    @extend_schema(
        request=ShortLivedTokensSerializer,
        responses=ClusterDetailSerializer,
        summary="Ask a member for tokens that end",
    )
    @action(detail=True, methods=["put"], url_path="short-lived-tokens")
    def short_lived_tokens(self, request: Request, name: str) -> Response:
        """Refused where the cluster no longer accepts what it was joined with, which would be used again."""
        cluster, body = self.get_object(), ShortLivedTokensSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        turn = member_tokens.turn_on if body.validated_data["on"] else member_tokens.turn_off
        turn(cluster, by=request.user.get_username(), now=clock.now())
        return self._shown(cluster)

    @extend_schema(request=None, responses=ClusterDetailSerializer, summary="Place nothing more here")
    @action(detail=True, methods=["post"])
    def cordon(self, request: Request, name: str) -> Response:
        return self._steered(request, partial(clusters.cordon, on=True))

    @extend_schema(request=None, responses=ClusterDetailSerializer, summary="Place here again, cordoned or drained")
    @action(detail=True, methods=["post"])
    def uncordon(self, request: Request, name: str) -> Response:
        return self._steered(request, clusters.reopen)

    @extend_schema(request=None, responses=ClusterDetailSerializer, summary="Move the jobs away and place no more")
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, name: str) -> Response:
        return self._steered(request, clusters.drain)

    @extend_schema(request=None, responses={204: None}, summary="Let a simulated member fall silent, to see jobs move")
    @action(detail=True, methods=["post"])
    def silence(self, request: Request, name: str) -> Response:
        rehearsing.silence(self.get_object(), by=request.user.get_username(), now=clock.now())
        return Response(status=204)

    @extend_schema(request=None, responses={204: None}, summary="Let a simulated member answer again")
    @action(detail=True, methods=["post"])
    def revive(self, request: Request, name: str) -> Response:
        rehearsing.revive(self.get_object(), by=request.user.get_username(), now=clock.now())
        return Response(status=204)

    @extend_schema(responses=AddonSerializer(many=True), filters=False, summary="A member's add-ons, asked of it now")
    @action(detail=True, filter_backends=[], pagination_class=None)
    def addons(self, request: Request, name: str) -> Response:
        return Response(AddonSerializer(member_addons.of(self.get_object()), many=True).data)

    @extend_schema(
        request=InstallSerializer,
        responses=AddonSerializer(many=True),
        summary="Install the supervisor of elastic jobs in a member",
    )
    @addons.mapping.post
    def install(self, request: Request, name: str) -> Response:
        """Or bring what is installed up to this version's manifests. Refused with the object that may not be created."""
        body = InstallSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        by, image = request.user.get_username(), body.validated_data["image"]
        installed = member_addons.install(self.get_object(), image, by=by, now=clock.now())
        return Response(AddonSerializer(installed, many=True).data)

    @extend_schema(responses=NodeSerializer(many=True), filters=False)
    @action(detail=True, filter_backends=[])
    def nodes(self, request: Request, name: str) -> Response:
        nodes = self.get_object().nodes.select_related("cluster").defer("cluster__access").order_by("name")
        page = viewsets.GenericViewSet.paginate_queryset(self, nodes)
        rows = supply.attach_exclusions(page or (), access.sees(request.user))
        return self.get_paginated_response(NodeSerializer(rows, many=True).data)

    @extend_schema(
        request=NodeLabelsSerializer, responses=NodeLabelsSerializer, summary="Label a member's node, or exclude it"
    )
    @action(detail=True, methods=["patch"], url_path="nodes/(?P<node>[^/]+)")
    def node(self, request: Request, name: str, node: str) -> Response:
        """Sets labels, or removes those that are null, in the cluster itself. Answers with all labels of the node.

        With `exclude`, the node takes no new pods for a while, or takes them again; its cluster is not touched by that.
        """
        cluster, body = self.get_object(), NodeLabelsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        change, by, now = body.validated_data, request.user.get_username(), clock.now()
        if "exclude" in change:
            self._exclude(cluster, node, change["exclude"], by, now)
        if "labels" not in change:
            labels = self._labels_of(cluster, node, may_be_gone="exclude" in change)
            return Response({"labels": labels, "overwrite": change["overwrite"]})
        overwrite = change["overwrite"]
        labels = node_labels.change(cluster, node, change["labels"], overwrite=overwrite, by=by, now=now)
        return Response({"labels": labels, "overwrite": overwrite})

    @extend_schema(request=DrainNodeSerializer, responses={204: None}, summary="Place no more pods on a member's node")
    @action(detail=True, methods=["post"], url_path="nodes/(?P<node>[^/]+)/cordon")
    def cordon_node(self, request: Request, name: str, node: str) -> Response:
        """Until it is uncordoned, for 90 days at most. Its jobs run on, and its cluster is not touched."""
        return self._on_node(request, node, node_exclusions.cordon)

    @extend_schema(request=None, responses={204: None}, summary="Place pods on a member's node again")
    @action(detail=True, methods=["post"], url_path="nodes/(?P<node>[^/]+)/uncordon")
    def uncordon_node(self, request: Request, name: str, node: str) -> Response:
        """Ends its drain as well. Jobs that have left it do not come back to it by themselves."""
        node_exclusions.include(self.get_object(), node, by=request.user.get_username(), now=clock.now())
        return Response(status=204)

    @extend_schema(request=DrainNodeSerializer, responses={204: None}, summary="Have the jobs leave a member's node")
    @action(detail=True, methods=["post"], url_path="nodes/(?P<node>[^/]+)/drain")
    def drain_node(self, request: Request, name: str, node: str) -> Response:
        """Each job that has pods there starts anew elsewhere, as a whole, at the pace of the cluster; `whatif` says where."""
        return self._on_node(request, node, node_exclusions.drain)

    @extend_schema(
        request=ReclaimSerializer, responses={204: None}, summary="Let a simulated member's node be reclaimed"
    )
    @action(detail=True, methods=["post"], url_path="nodes/(?P<node>[^/]+)/reclaim")
    def reclaim(self, request: Request, name: str, node: str) -> Response:
        """As the market of a spot pool does it: a taint with the deadline, then the node is gone with what runs on it."""
        body = ReclaimSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        by, notice_s = request.user.get_username(), body.validated_data["notice_s"]
        rehearsing.reclaim(self.get_object(), node, notice_s, by=by, now=clock.now())
        return Response(status=204)

    @extend_schema(request=None, responses={204: None}, summary="Let a simulated member's node come back")
    @reclaim.mapping.delete
    def give_back(self, request: Request, name: str, node: str) -> Response:
        rehearsing.give_back(self.get_object(), node, by=request.user.get_username(), now=clock.now())
        return Response(status=204)

    @staticmethod
    def _exclude(cluster: Cluster, node: str, wanted: Mapping[str, Any] | None, by: str, now: datetime) -> None:
        if wanted is None:
            node_exclusions.include(cluster, node, by=by, now=now)
        else:
            until = now + timedelta(hours=wanted["hours"])
            node_exclusions.exclude(cluster, node, wanted["why"], until, by=by, now=now)

    @staticmethod
    def _labels_of(cluster: Cluster, node: str, *, may_be_gone: bool) -> dict[str, str]:
        """None of a node that is gone: it may be let take pods again for when it comes back."""
        try:
            return node_exclusions.labels_of(cluster, node)
        except NotFound:
            if may_be_gone:
                return {}
            raise

    def _on_node(self, request: Request, node: str, steer: Callable[..., NodeExclusion]) -> Response:
        cluster, body = self.get_object(), DrainNodeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        steer(cluster, node, body.validated_data["why"], by=request.user.get_username(), now=clock.now())
        return Response(status=204)

    def _steered(self, request: Request, steer: Callable[..., Cluster]) -> Response:
        cluster = self.get_object()
        steer(cluster, by=request.user.get_username(), now=clock.now())
        return self._shown(cluster)

    def _shown(self, cluster: Cluster, status: int = 200) -> Response:
        cluster.refresh_from_db()
        return Response(ClusterDetailSerializer(supply.attach([cluster])[0]).data, status=status)


class NodeFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="cluster__name")

    class Meta:
        model = Node
        fields = ["cluster", "ready", "unschedulable", "name"]


class NodeViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Node]):
    kind = "Node"
    permission_classes = [ByRole]
    queryset = Node.objects.select_related("cluster").defer("cluster__access")
    serializer_class = NodeSerializer
    filterset_class = NodeFilter
    search_fields = ["name", "cluster__name"]
    ordering_fields = ["name", "cluster__name", "ready"]
    ordering = ["cluster__name", "name"]

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        return page if page is None else supply.attach_exclusions(page, access.sees(self.request.user))


class EventFilter(django_filters.FilterSet):
    kind = django_filters.CharFilter(field_name="regarding_kind", lookup_expr="iexact")
    namespace = django_filters.CharFilter(field_name="regarding_namespace")
    name = django_filters.CharFilter(field_name="regarding_name")
    uid = django_filters.CharFilter(field_name="regarding_uid")
    cluster = django_filters.CharFilter(method="in_scope", help_text="about the cluster, or a job that is there now")
    queue = django_filters.CharFilter(method="in_scope", help_text="about a job of the queue, or of one below it")

    class Meta:
        model = Event
        fields = ["kind", "namespace", "name", "uid", "type", "reason", "cluster", "queue"]

    def in_scope(self, rows: QuerySet[Event], name: str, value: str) -> QuerySet[Event]:
        return queries.events_of(rows, name, value)


@extend_schema_view(list=extend_schema(parameters=[OpenApiParameter("name", OpenApiTypes.STR)]))
class EventViewSet(Guarded, mixins.ListModelMixin, viewsets.GenericViewSet[Event]):
    kind = "Event"
    permission_classes = [ByRole]
    serializer_class = EventSerializer
    filterset_class = EventFilter
    search_fields = ["reason", "message", "regarding_name"]
    ordering_fields = ["last_at", "first_at", "count"]
    ordering = ["-last_at", "-id"]

    def get_queryset(self) -> QuerySet[Event]:
        return visible(Event.objects.all(), self.request.user, "regarding_namespace", shared=True)


def visible(rows: QuerySet[Any], user: Any, field: str = "namespace", *, shared: bool = False) -> QuerySet[Any]:
    """Only rows of namespaces this user may read; ``shared`` adds those of no namespace."""
    allowed = access.visible_namespaces(user)
    if allowed is None:
        return rows
    condition = Q(**{f"{field}__in": allowed})
    return rows.filter(condition | Q(**{field: ""}) if shared and access.roles(user) else condition)


def flag(request: Request, name: str) -> bool:
    """A query parameter that is there, or is true."""
    value = request.query_params.get(name, "false").lower()
    if value not in ("", "1", "0", "true", "false"):
        raise ParseError(f"{name} is true or false, not {value[:40]!r}")
    return value in ("", "1", "true")
