"""Why a job is where it is, over REST: every cluster looked at, and what would let the job start."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.clusters import visible
from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import NotFound
from fleet.services.authorization import access
from jobs.api.placement import SpeedSerializer
from jobs.api.serializers import QuotaVerdictSerializer, ReasonSerializer
from jobs.core.explain import remedies
from jobs.core.placement.explaining import Cause
from jobs.models import Job
from jobs.services.inspect import explaining
from quotas.services import scopes


class ClaimSerializer(serializers.Serializer[Any]):
    """Capacity held for a job whose pods are not visible yet, or reserved for a big gang that waits."""

    job = serializers.CharField(help_text="empty: one that the reader may not see")
    amounts = serializers.DictField(child=serializers.IntegerField())
    pods = serializers.IntegerField()
    made_at = serializers.DateTimeField()
    ends = serializers.CharField(help_text="in words: a hold has no time limit, it ends with the event it waits for")
    until = serializers.DateTimeField(allow_null=True, help_text="when that is expected, where it is known")


@extend_schema_field({"allOf": [{"type": "string", "enum": [cause.value for cause in Cause]}]})
class CauseField(serializers.CharField):
    """An enumeration without a name of its own."""


@extend_schema_field({"type": "string", "enum": ["Waits", "Fits", "Placed", "Ended"]})
class OutcomeField(serializers.CharField):
    """As `CauseField`; an attempt has outcomes too."""


@extend_schema_serializer(deprecate_fields=("short", "never", "term", "parts", "held"))
class ClusterExplainedSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    fits = serializers.BooleanField()
    chosen = serializers.BooleanField(help_text="where the job is")
    code = serializers.CharField()
    cause = CauseField(help_text="the obstacle, finer than the code")
    message = serializers.CharField()
    missing = serializers.DictField(
        child=serializers.IntegerField(), source="short", help_text="missing amounts, in whole units"
    )
    short = serializers.DictField(child=serializers.IntegerField(), help_text="use `missing`")
    role = serializers.CharField(help_text="whose pods it is about; empty: the whole gang")
    nodes = serializers.CharField(help_text="the class of nodes it is about")
    never_fits = serializers.BooleanField(source="never", help_text="proven: not even when the cluster is empty")
    never = serializers.BooleanField(help_text="use `never_fits`")
    affinity_term = serializers.IntegerField(
        source="term", help_text="index, from 0, of the policy's ordered affinity term that selects the cluster"
    )
    term = serializers.IntegerField(help_text="use `affinity_term`")
    score = serializers.FloatField()
    score_parts = serializers.DictField(child=serializers.FloatField(), source="parts", help_text="the score by part")
    parts = serializers.DictField(child=serializers.FloatField(), help_text="use `score_parts`")
    holds = ClaimSerializer(many=True, source="held", help_text="the oldest holds on missing amounts")
    held = ClaimSerializer(many=True, help_text="use `holds`")


class JobRefSerializer(serializers.Serializer[Any]):
    """A job that advice is about; of a namespace that the reader may not see, its amounts alone."""

    id = serializers.CharField(source="uid", help_text="empty: it may not be seen")
    name = serializers.CharField(help_text="namespace/name; empty: it may not be seen")
    amounts = serializers.DictField(child=serializers.IntegerField())
    allowed = serializers.SerializerMethodField(help_text="whether the reader may suspend it")

    def get_allowed(self, job: remedies.JobRef) -> bool:
        return _may_suspend(self.context["request"].user, job)


class StepSerializer(serializers.Serializer[Any]):
    """Those of placement were tried on the placement engine, those of quotas follow from the tree in force."""

    kind = serializers.ChoiceField([(each.value, each.name) for each in remedies.Kind])
    message = serializers.CharField()
    cluster = serializers.CharField()
    path = serializers.CharField(help_text="the node of the quota tree")
    queue = serializers.CharField(help_text="the queue that is to be opened")
    bound = serializers.CharField(help_text="which limit is to be raised: min or max")
    role = serializers.CharField(help_text="whose pods ask for too much; empty: the whole gang")
    jobs = serializers.ListField(
        child=serializers.CharField(), source="names", help_text="that would have to end, as far as they may be seen"
    )
    held_by = JobRefSerializer(many=True, source="jobs", help_text="all of them, with what each holds")
    count = serializers.IntegerField(help_text="of nodes, or of those jobs that have to end")
    beside = serializers.IntegerField(help_text="nodes it takes while what runs there goes on; 0: as many, or unknown")
    amounts = serializers.DictField(
        child=serializers.IntegerField(), help_text="of one node, of the limit, or borrowed"
    )
    at = serializers.DateTimeField(allow_null=True, help_text="when it is over, or when the queue was closed")
    by = serializers.CharField(help_text="who closed the queue")
    comment = serializers.CharField(help_text="why the queue was closed, or the taints")
    manifest = serializers.DictField(
        help_text="what to apply, where that is all it takes; empty: it takes something else"
    )
    allowed = serializers.SerializerMethodField(help_text="whether the reader may do it")
    needs = serializers.SerializerMethodField(help_text="the role that may do it; empty: everybody, or time alone")

    def get_allowed(self, change: remedies.Change) -> bool:
        user = self.context["request"].user
        if change.kind in _ENDS_JOBS:
            return 0 < change.count <= sum(_may_suspend(user, job) for job in change.jobs)
        return _right(change, self.context["explained"]).held_by(user)

    def get_needs(self, change: remedies.Change) -> str:
        return _right(change, self.context["explained"]).role


class ChangeSerializer(StepSerializer):
    steps = StepSerializer(many=True, help_text="of AllOf: none of them helps alone")


@dataclass(frozen=True, slots=True)
class _Right:
    """What it takes to do a thing: a verb on a kind in a namespace, or the charge of a node of the quota tree."""

    verb: str = ""
    kind: str = ""
    namespace: str = ""
    path: str = ""

    @property
    def role(self) -> str:
        return access.wanted(self.verb, self.kind) if self.verb else ""

    def held_by(self, user: Any) -> bool:
        if not self.verb:
            return True
        if self.kind == "Queue":
            return scopes.scope_of(user).may_run(self.path)
        if self.kind == "ElasticQuotaTree":
            return scopes.scope_of(user).may_edit(self.path)
        return access.may(user, self.verb, self.kind, self.namespace)


_CLUSTER = {
    remedies.Kind.UNCORDON: "cordon",
    remedies.Kind.JOIN_CLUSTER: "join",
    remedies.Kind.ADD_NODES: "label",
    remedies.Kind.RESTORE_CLUSTER: "cordon",
}
_ENDS_JOBS = {
    remedies.Kind.WAIT_FOR_JOBS,
    remedies.Kind.RETURN_BORROWED,
    remedies.Kind.LOOK_AT_JOB,
    remedies.Kind.WAIT_FOR_GANG,
}
"""Helped by suspending the jobs that it names."""
_TREE = {
    remedies.Kind.RAISE_QUOTA,
    remedies.Kind.RAISE_BUDGET,
    remedies.Kind.ADD_NAMESPACE,
    remedies.Kind.MAKE_QUOTA_TREE,
}


def _may_suspend(user: Any, job: remedies.JobRef) -> bool:
    return bool(job.uid) and access.may(user, "suspend", "Job", job.name.partition("/")[0])


def _right(change: remedies.Change, job: Job) -> _Right:
    kind = change.kind
    if kind in _CLUSTER:
        return _Right(_CLUSTER[kind], "Cluster")
    if kind in _TREE:
        return _Right("apply", "ElasticQuotaTree", path=change.path)
    match kind:
        case remedies.Kind.OPEN_QUEUE:
            return _Right("open", "Queue", path=change.path)
        case remedies.Kind.MAKE_POLICY | remedies.Kind.SELECT | remedies.Kind.TOLERATE:
            namespace = change.manifest.get("metadata", {}).get("namespace", "")
            return _Right("apply", change.manifest.get("kind", "PropagationPolicy"), namespace)
        case remedies.Kind.RESUME:
            return _Right("resume", "Job", job.namespace)
        case kind if kind in _ENDS_JOBS:
            return _Right("suspend", "Job")
        case (
            remedies.Kind.LOWER_REQUEST
            | remedies.Kind.CHANGE_AFTER
            | remedies.Kind.SUBMIT_AGAIN
            | remedies.Kind.END_BEFORE
        ):
            return _Right("apply", "Job", job.namespace)
    return _Right()


@extend_schema_serializer(deprecate_fields=("never",))
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
    never_fits = serializers.BooleanField(
        source="never", help_text="no cluster that its policy allows could hold it even empty"
    )
    never = serializers.BooleanField(help_text="use `never_fits`")
    reason = ReasonSerializer(source="job.reason", allow_null=True, help_text="as the scheduler last wrote it")
    quota = QuotaVerdictSerializer(allow_null=True)
    speed = SpeedSerializer(
        allow_null=True, help_text="where it is or would go now; null: the job does not declare its model's size"
    )
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
        explanation = explaining.explain_job(job, clock.now(), access.sees(request.user))
        return Response(ExplanationSerializer(explanation, context={"request": request, "explained": job}).data)
