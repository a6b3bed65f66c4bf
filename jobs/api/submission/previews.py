"""What applying manifests would do, over REST: read and authorised as `apply` is, and nothing is kept."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.db import clock
from fleet.services.authorization import access
from jobs.api.serializers import GangRoleSerializer, ReasonSerializer, ShortSerializer
from jobs.api.submission.answers import AppliedSerializer
from jobs.api.submission.bodies import PARSERS
from jobs.api.submission.manifests import MANIFESTS, allowed_documents
from jobs.services.submission import previews


class OutlookSerializer(serializers.Serializer[Any]):
    """Where a job would go if it were alone in the queue."""

    kind = serializers.CharField(source="applied.kind")
    namespace = serializers.CharField(source="applied.namespace")
    name = serializers.CharField(source="applied.name")
    leaf = serializers.CharField(help_text="the quota leaf it would be charged to; empty: none")
    policy = serializers.CharField(help_text="the policy that would claim it; empty: none")
    roles = GangRoleSerializer(many=True)
    total = serializers.DictField(child=serializers.IntegerField())
    cluster = serializers.CharField(help_text="where it would be placed; empty: it would wait")
    reason = serializers.SerializerMethodField(help_text="why it would wait")
    clusters = serializers.SerializerMethodField()

    @extend_schema_field(ReasonSerializer(allow_null=True))
    def get_reason(self, outlook: previews.Outlook) -> dict[str, Any] | None:
        return ReasonSerializer(outlook.reason.as_json(), context=self.context).data if outlook.reason else None

    @extend_schema_field(ShortSerializer(many=True))
    def get_clusters(self, outlook: previews.Outlook) -> list[Any]:
        return list(ShortSerializer([verdict.as_json() for verdict in outlook.clusters], many=True).data)


class ClaimedJobSerializer(serializers.Serializer[Any]):
    namespace = serializers.CharField()
    name = serializers.CharField()


class ClaimsSerializer(serializers.Serializer[Any]):
    """Unfinished jobs that would be the policy's own, those of the same manifests included."""

    kind = serializers.CharField(source="applied.kind")
    namespace = serializers.CharField(source="applied.namespace")
    name = serializers.CharField(source="applied.name")
    count = serializers.IntegerField(help_text="of the whole fleet")
    jobs = serializers.SerializerMethodField(help_text="of the first 50, those of namespaces that the caller may read")

    @extend_schema_field(ClaimedJobSerializer(many=True))
    def get_jobs(self, claims: previews.Claims) -> list[Any]:
        sees = access.sees(self.context["request"].user)
        return list(ClaimedJobSerializer([job for job in claims.first if sees(job.namespace)], many=True).data)


class ApplyPreviewSerializer(serializers.Serializer[Any]):
    applied = AppliedSerializer(many=True)
    jobs = OutlookSerializer(many=True)
    waiting = serializers.IntegerField(help_text="jobs that wait already, of the whole fleet")
    policies = ClaimsSerializer(many=True, help_text="which jobs each of the policies would claim")


class ApplyPreviewView(APIView):
    permission_classes = [SignedIn]
    parser_classes = PARSERS

    @extend_schema(request=MANIFESTS, responses=ApplyPreviewSerializer)
    def post(self, request: Request) -> Response:
        """Refuses what ``apply`` refuses, in the same words."""
        documents = allowed_documents(request, "apply")
        preview = previews.preview_manifests(documents, by=request.user.get_username(), now=clock.now())
        return Response(ApplyPreviewSerializer(preview, context={"request": request}).data)
