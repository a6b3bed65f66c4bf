"""What would become of jobs in the queues, over REST: read and authorised as `apply` is, and nothing is kept."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.db import clock
from fleet.services.authorization import access
from jobs.api.serializers import ReasonSerializer, visible_name
from jobs.api.submission.bodies import PARSERS
from jobs.api.submission.manifests import MANIFESTS, allowed_documents
from jobs.services.submission import dry_runs


@extend_schema_field({"type": "string", "enum": ["Starts", "Reclaims", "Waits"]})
class FateField(serializers.CharField):
    """An enumeration without a name of its own."""


class ReclaimedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="uid", help_text="empty when it is not the caller's to see")
    name = serializers.CharField(help_text="namespace/name; empty when it is not the caller's to see")
    leaf = serializers.CharField()
    cluster = serializers.CharField()
    message = serializers.CharField()
    lost_gpu_hours = serializers.FloatField(help_text="of work that it has not saved")
    not_before = serializers.DateTimeField(
        allow_null=True, help_text="when it would leave at the earliest, by the min-runtime of queues; null: at once"
    )


class StartSerializer(serializers.Serializer[Any]):
    starts_at = serializers.DateTimeField()
    basis = serializers.CharField(source="message", help_text="what the guess rests on")


class DryRunJobSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="applied.kind")
    namespace = serializers.CharField(source="applied.namespace")
    name = serializers.CharField(source="applied.name")
    leaf = serializers.CharField(help_text="the quota leaf it would be charged to; empty: none")
    priority = serializers.IntegerField()
    outcome = FateField(help_text="Reclaims: it starts once others have made room for it")
    cluster = serializers.CharField(help_text="where it would go; empty: it would wait")
    reason = serializers.SerializerMethodField(help_text="why it does not start at once")
    estimate = StartSerializer(allow_null=True, help_text="when it may start, where that can be guessed")
    reclaims = ReclaimedSerializer(many=True)

    @extend_schema_field(ReasonSerializer(allow_null=True))
    def get_reason(self, outcome: dry_runs.Outcome) -> dict[str, Any] | None:
        return ReasonSerializer(outcome.reason.as_json(), context=self.context).data if outcome.reason else None


class DryRunSerializer(serializers.Serializer[Any]):
    jobs = DryRunJobSerializer(many=True)


class DryRunView(APIView):
    permission_classes = [SignedIn]
    parser_classes = PARSERS

    @extend_schema(request=MANIFESTS, responses=DryRunSerializer)
    def post(self, request: Request) -> Response:
        """Whether jobs would be admitted now, beside all that wait, and which jobs they would preempt."""
        documents = allowed_documents(request, "apply")
        outcomes = dry_runs.preview_outcomes(documents, by=request.user.get_username(), now=clock.now())
        answer = DryRunSerializer({"jobs": outcomes}, context={"request": request}).data
        sees = access.sees(request.user)
        for each in (victim for job in answer["jobs"] for victim in job["reclaims"]):
            if not visible_name(each["name"], sees):
                each["id"] = each["name"] = ""
        return Response(answer)
