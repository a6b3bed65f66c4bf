"""Why a job is where it is, over REST: every cluster looked at, and what would let the job start."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.clusters import visible
from fleet.api.permissions import ByRole, Guarded
from fleet.errors import NotFound
from jobs.api.placement import SpeedSerializer
from jobs.api.serializers import QuotaVerdictSerializer, ReasonSerializer
from jobs.core.placing.explaining import Cause
from jobs.models import Job
from jobs.services import explaining


class ClaimSerializer(serializers.Serializer[Any]):
    """Capacity promised to a job whose pods are not seen yet, or kept for a big gang that waits."""

    job = serializers.CharField()
    amounts = serializers.DictField(child=serializers.IntegerField())
    pods = serializers.IntegerField()
    made_at = serializers.DateTimeField()
    ends = serializers.CharField(help_text="in words: a promise has no time, it ends with what it was made for")
    until = serializers.DateTimeField(allow_null=True, help_text="when that is expected, where it is known")


@extend_schema_field({"allOf": [{"type": "string", "enum": [cause.value for cause in Cause]}]})
class CauseField(serializers.CharField):
    """An enumeration without a name of its own."""


@extend_schema_field({"type": "string", "enum": ["Waits", "Fits", "Placed", "Ended"]})
class OutcomeField(serializers.CharField):
    """As `CauseField`; an attempt has outcomes too."""


class ClusterExplainedSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    fits = serializers.BooleanField()
    chosen = serializers.BooleanField(help_text="where the job is")
    code = serializers.CharField()
    cause = CauseField(help_text="what stands in the way, finer than the code")
    message = serializers.CharField()
    short = serializers.DictField(child=serializers.IntegerField(), help_text="what is missing, in whole units")
    role = serializers.CharField(help_text="whose pods it is about; empty: the whole gang")
    nodes = serializers.CharField(help_text="the class of nodes it is about")
    never = serializers.BooleanField(help_text="proven: not even when the cluster is empty")
    term = serializers.IntegerField(help_text="which of the policy's ordered affinity terms lets it in, from 0")
    score = serializers.FloatField()
    parts = serializers.DictField(child=serializers.FloatField(), help_text="of the score")
    held = ClaimSerializer(many=True, help_text="the oldest promises of what is short")


class ChangeSerializer(serializers.Serializer[Any]):
    """Each was tried on the placement engine before it is told, those of quotas excepted."""

    kind = serializers.ChoiceField(
        ["WaitUntil", "Uncordon", "Tolerate", "WaitForJobs", "Select", "AddNodes", "RaiseQuota"]
    )
    message = serializers.CharField()
    cluster = serializers.CharField()
    path = serializers.CharField(help_text="the node of the quota tree")
    jobs = serializers.ListField(child=serializers.CharField(), help_text="that would have to end")
    count = serializers.IntegerField(help_text="of nodes or jobs")
    amounts = serializers.DictField(child=serializers.IntegerField(), help_text="of one node, or of the limit")
    at = serializers.DateTimeField(allow_null=True)


class ExplanationSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="job.uid")
    kind = serializers.CharField(source="job.kind")
    namespace = serializers.CharField(source="job.namespace")
    name = serializers.CharField(source="job.name")
    state = serializers.CharField(source="job.state")
    cluster = serializers.CharField(source="job.cluster.name", default=None, allow_null=True)
    attempt = serializers.IntegerField(source="job.attempt")
    at = serializers.DateTimeField(help_text="when the clusters were looked at")
    outcome = OutcomeField(help_text="Fits: only its turn or its quota is in the way")
    message = serializers.CharField()
    never = serializers.BooleanField(help_text="no cluster that its policy allows could hold it even empty")
    reason = ReasonSerializer(source="job.reason", allow_null=True, help_text="as the scheduler last wrote it")
    quota = QuotaVerdictSerializer(allow_null=True)
    speed = SpeedSerializer(allow_null=True, help_text="where it is or would go now, if it tells what its model weighs")
    clusters = ClusterExplainedSerializer(many=True, help_text="those that hold it first, as they would be chosen")
    changes = ChangeSerializer(many=True, help_text="what would let it start, what costs least first")


class ExplainView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(responses=ExplanationSerializer)
    def get(self, request: Request, id: UUID) -> Response:
        """Looked at now if the job waits; as it was decided if it has a place."""
        rows = visible(Job.objects.select_related("cluster", "policy", "binding"), request.user)
        job = rows.filter(uid=id).first()
        if job is None:
            raise NotFound("there is no such job")
        self.check_object_permissions(request, job)
        return Response(ExplanationSerializer(explaining.of(job, timezone.now())).data)
