"""What would be otherwise if the fleet were, over REST. Reads as much as the caller may; nothing is touched."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.db import clock
from fleet.errors import invalid
from fleet.services.authorization import access
from jobs.api.serializers import ReasonSerializer
from jobs.services.inspect import whatif
from jobs.services.inspect.whatif import NewNodes, NewQuota, OneNode, Suppose
from jobs.services.submission import manifests


class NewNodesSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(max_length=63)
    count = serializers.IntegerField(default=1)
    allocatable = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="of one node; else as most nodes of the cluster"
    )


class NewQuotaSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(max_length=700)
    min = serializers.DictField(child=serializers.JSONField(), required=False)
    max = serializers.DictField(child=serializers.JSONField(), required=False)


class OneNodeSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(max_length=63)
    node = serializers.CharField(max_length=253)


class SupposeSerializer(serializers.Serializer[Any]):
    """At least one of them; all of them hold at once."""

    add_job = serializers.CharField(required=False, help_text="manifests as YAML or JSON text")
    lose_cluster = serializers.CharField(required=False, max_length=63, help_text="it does not answer any more")
    drain_cluster = serializers.CharField(required=False, max_length=63)
    drain_node = OneNodeSerializer(required=False, help_text="all jobs that have pods there leave it")
    add_nodes = NewNodesSerializer(required=False)
    raise_quota = NewQuotaSerializer(required=False)


@extend_schema_field({"type": "string", "enum": ["New", "Runs", "Starts", "Waits"]})
class StandField(serializers.CharField):
    """An enumeration without a name of its own."""


class StandSerializer(serializers.Serializer[Any]):
    outcome = StandField(help_text="New: not submitted; Starts: in the next cycle")
    cluster = serializers.CharField(
        help_text="where it runs or starts, or for which cluster that does not answer it waits"
    )
    reason = serializers.SerializerMethodField()

    @extend_schema_field(ReasonSerializer(allow_null=True))
    def get_reason(self, outcome: whatif.JobOutcome) -> Any:
        return ReasonSerializer(outcome.reason.as_json(), context=self.context).data if outcome.reason else None


class StandsOtherwiseSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="uid", help_text="empty for a supposed job")
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    before = StandSerializer()
    after = StandSerializer()


class WhatIfSerializer(serializers.Serializer[Any]):
    """Counts are of the whole fleet; jobs are listed only in the namespaces the caller may read."""

    differences = StandsOtherwiseSerializer(many=True)
    hidden_leaving = serializers.IntegerField(
        help_text="jobs that would leave where they run and are not listed, since the caller may not read their namespaces"
    )
    starts_before = serializers.IntegerField()
    starts_after = serializers.IntegerField()
    waits_before = serializers.IntegerField()
    waits_after = serializers.IntegerField()


class WhatIfView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(request=SupposeSerializer, responses=WhatIfSerializer)
    def post(self, request: Request) -> Response:
        """What the next scheduling cycle would do otherwise."""
        if not access.may_somewhere(request.user, access.READ, "Job"):
            raise access.refusal(request.user, access.READ, "Job")
        serializer = SupposeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by = request.user.get_username()
        answer = whatif.simulate_change(_suppose(request, serializer.validated_data), by=by, now=clock.now())
        shown = answer.shown_to(access.sees(request.user))
        return Response(WhatIfSerializer(shown, context={"request": request}).data)


def _suppose(request: Request, changes: dict[str, Any]) -> Suppose:
    if not changes:
        raise invalid("add_job", "say at least one of " + ", ".join(SupposeSerializer().fields))
    losses = [name for name in ("lose_cluster", "drain_cluster", "drain_node") if name in changes]
    if len(losses) > 1:
        raise invalid(losses[1], f"cannot be asked together with {losses[0]}: ask for one after the other")
    nodes, quota, drained = changes.get("add_nodes"), changes.get("raise_quota"), changes.get("drain_node")
    documents = manifests.parse(changes["add_job"].encode()) if "add_job" in changes else ()
    for document in documents:
        metadata = document.get("metadata")
        namespace = str((metadata.get("namespace") if isinstance(metadata, dict) else "") or "default")
        access.require(request.user, "apply", str(document.get("kind") or "object"), namespace)
    return Suppose(
        add_jobs=documents,
        lose_cluster=changes.get("lose_cluster", ""),
        drain_cluster=changes.get("drain_cluster", ""),
        drain_node=OneNode(**drained) if drained else None,
        add_nodes=NewNodes(**nodes) if nodes else None,
        raise_quota=NewQuota(**quota) if quota else None,
    )
