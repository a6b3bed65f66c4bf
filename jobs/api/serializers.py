"""How demand looks in JSON: jobs, what was decided for them, policies, and the names (only) of what travels along."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.models import Pod
from jobs.api.placement import PlacementSerializer, placement_of
from jobs.core.failover.causes import Cause
from jobs.core.failover.lifecycle import Action
from jobs.core.life.shares import ShareState
from jobs.kinds import registry
from jobs.kinds.base import without_resolved
from jobs.models import Attempt, Binding, Dependent, Job, Policy
from jobs.services.submission import actions as submission_actions


@extend_schema_serializer(deprecate_fields=("short",))
class ShortSerializer(serializers.Serializer[Any]):
    """The scheduler's verdict on one cluster; ``missing`` is in whole units, and ``short`` its former name."""

    cluster = serializers.CharField()
    fits = serializers.BooleanField(required=False)
    code = serializers.CharField()
    message = serializers.CharField()
    missing = serializers.DictField(child=serializers.IntegerField(), source="short", required=False)
    short = serializers.DictField(child=serializers.IntegerField(), required=False, help_text="use `missing`")
    score = serializers.FloatField(required=False)


class QuotaVerdictSerializer(serializers.Serializer[Any]):
    """The quota's answer; which of the numbers and names there are depends on its code."""

    code = serializers.CharField()
    path = serializers.CharField(help_text="the node of the quota tree whose limit it is")
    message = serializers.CharField()
    resource = serializers.CharField(required=False)
    asked = serializers.IntegerField(required=False, help_text="in whole units, as the others")
    used = serializers.IntegerField(required=False)
    kept = serializers.IntegerField(required=False, help_text="what idle queues keep back out of the same limit")
    max = serializers.IntegerField(required=False)
    min = serializers.IntegerField(required=False, help_text="instead of max, for a job that may not be preempted")
    entitled = serializers.BooleanField(required=False, help_text="others borrow what it was promised")
    position = serializers.IntegerField(required=False)
    blocker = serializers.CharField(required=False, help_text="the job that holds up the queue")
    queue = serializers.CharField(required=False, help_text="the queue that is closed")
    state = serializers.CharField(required=False, help_text="of that queue")
    from_jobs = serializers.ListField(child=serializers.CharField(), required=False, help_text="who leaves for it")
    until = serializers.DateTimeField(required=False, allow_null=True, help_text="when they are gone at the latest")


@extend_schema_field({"allOf": [{"type": "string", "enum": [cause.value for cause in Cause]}]})
class FailureCauseField(serializers.CharField):
    """As `StateField`: what stands in the way of a placement has causes too."""


class ReasonSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    clusters = ShortSerializer(many=True, required=False)
    quota = QuotaVerdictSerializer(required=False, help_text="what the quota says, beside the clusters")
    at = serializers.DateTimeField(required=False, help_text="when the scheduler last looked")
    cause = FailureCauseField(required=False, help_text="of a failure: the program, its memory, its node ...")


class GangRoleSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    replicas = serializers.IntegerField()
    request = serializers.DictField(child=serializers.IntegerField())


class AllowedSerializer(serializers.Serializer[Any]):
    allowed = serializers.BooleanField()
    reason = serializers.CharField(help_text="why not; empty when it is allowed")


class ActionsSerializer(serializers.Serializer[Any]):
    suspend = AllowedSerializer()
    resume = AllowedSerializer()
    delete = AllowedSerializer()


class PolicyNameSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()


@extend_schema_field({"allOf": [{"type": "string", "enum": [state.value for state in Job.State]}]})
class StateField(serializers.CharField):
    """An enumeration without a name: under its field name a cluster has one with other values."""


class JobSerializer(serializers.ModelSerializer[Job]):
    id = serializers.UUIDField(source="uid", read_only=True)
    state = StateField(read_only=True)
    cluster = serializers.CharField(source="cluster.name", default=None, read_only=True, allow_null=True)
    policy = PolicyNameSerializer(read_only=True, allow_null=True)
    labels = serializers.DictField(child=serializers.CharField(), read_only=True)
    reason = ReasonSerializer(read_only=True, allow_null=True)
    roles = GangRoleSerializer(many=True, read_only=True)
    total = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    actions = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields: tuple[str, ...] = (
            "id", "kind", "api_version", "namespace", "name", "labels", "state", "reason", "cluster", "attempt",
            "created_at", "queued_at", "started_at", "finished_at", "deleting_at", "roles", "gpus", "total", "priority",
            "suspended", "policy", "leaf", "preemptible", "resource_version", "actions",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    @extend_schema_field(ActionsSerializer)
    def get_actions(self, job: Job) -> dict[str, dict[str, Any]]:
        refusals = {action.value: submission_actions.allowed(job, action) for action in Action}
        return {name: {"allowed": not why, "reason": why} for name, why in refusals.items()}


@extend_schema_field({"allOf": [{"type": "string", "enum": [state.value for state in ShareState]}]})
class ShareStateField(serializers.CharField):
    """As `StateField`."""


class JobBindingSerializer(serializers.ModelSerializer[Binding]):
    cluster = serializers.CharField(source="cluster.name", default=None, read_only=True, allow_null=True)
    explanation = ShortSerializer(many=True, read_only=True)

    class Meta:
        model = Binding
        fields: tuple[str, ...] = ("cluster", "attempt", "result", "explanation", "scheduled_at")
        read_only_fields: tuple[str, ...] = fields


class ShareSerializer(serializers.Serializer[Any]):
    """What one cluster has of a job that is divided."""

    attempt = serializers.IntegerField()
    cluster = serializers.CharField()
    replicas = serializers.IntegerField(help_text="pods at a time; 0 once it is lost")
    completions = serializers.IntegerField(help_text="pods that have to succeed there; 0: not counted")
    state = ShareStateField(help_text="Lost: it has left; what it had completed counts")


class WrittenManifestField(serializers.DictField):
    """As the person wrote it."""

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return dict(super().to_representation(without_resolved(value)))


class JobDetailSerializer(JobSerializer):
    manifest = WrittenManifestField(read_only=True)
    status = serializers.DictField(read_only=True)
    shares = ShareSerializer(many=True, read_only=True, help_text="of a job that is divided over clusters; else empty")
    binding = serializers.SerializerMethodField()
    placement = serializers.SerializerMethodField(help_text="where its ranks are; null where no nodes were chosen")

    class Meta(JobSerializer.Meta):
        fields = (*JobSerializer.Meta.fields, "generation", "manifest", "status", "shares", "binding", "placement")
        read_only_fields = fields

    @extend_schema_field(PlacementSerializer(allow_null=True))
    def get_placement(self, job: Job) -> dict[str, Any] | None:
        return placement_of(job)

    @extend_schema_field(JobBindingSerializer(allow_null=True))
    def get_binding(self, job: Job) -> dict[str, Any] | None:
        binding = getattr(job, "binding", None)
        return None if binding is None else dict(JobBindingSerializer(binding).data)


class PodEndSerializer(serializers.Serializer[Any]):
    """A pod as it was when its attempt failed; what is not known is left out."""

    pod = serializers.CharField()
    phase = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    exit_code = serializers.IntegerField(required=False)
    disruption = serializers.CharField(required=False, help_text="why the cluster took the pod away")
    node = serializers.CharField(required=False)
    node_ready = serializers.BooleanField(required=False)
    restarts = serializers.IntegerField(required=False)
    message = serializers.CharField(required=False)


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    cluster = serializers.CharField(source="cluster_name", read_only=True)
    cause = serializers.SerializerMethodField(help_text="why it failed; null: it did not, or that is not known yet")
    evidence = serializers.SerializerMethodField(help_text="the pods that show the cause, at most 20")
    explanation = ShortSerializer(many=True, read_only=True, help_text="what it was placed by: clusters, best first")

    class Meta:
        model = Attempt
        fields = (
            "number", "cluster", "placed_at", "started_at", "ended_at", "outcome", "message", "cause", "evidence",
            "explanation",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(PodEndSerializer(many=True))
    def get_evidence(self, attempt: Attempt) -> list[dict[str, Any]]:
        return attempt.evidence or []

    @extend_schema_field(FailureCauseField(allow_null=True))
    def get_cause(self, attempt: Attempt) -> str | None:
        return attempt.cause or None


class PodSerializer(serializers.ModelSerializer[Pod]):
    cluster = serializers.CharField(source="cluster.name", read_only=True)
    ready = serializers.SerializerMethodField(help_text="containers that are ready, of all: 1/1")

    class Meta:
        model = Pod
        fields = (
            "name", "namespace", "uid", "cluster", "attempt", "role", "index", "node", "phase", "ready",
            "ready_containers", "containers", "restarts", "reason", "message", "created_at", "started_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_ready(self, pod: Pod) -> str:
        return f"{pod.ready_containers}/{pod.containers}"


class PolicySerializer(serializers.ModelSerializer[Policy]):
    id = serializers.UUIDField(source="uid", read_only=True)
    jobs = serializers.IntegerField(source="jobs_count", read_only=True, help_text="jobs it claims now")
    manifest = serializers.DictField(read_only=True)

    class Meta:
        model = Policy
        fields = ("id", "kind", "namespace", "name", "generation", "manifest", "created_at", "jobs", "resource_version")
        read_only_fields = fields


class BindingSerializer(JobBindingSerializer):
    id = serializers.UUIDField(source="uid", read_only=True)
    namespace = serializers.CharField(source="job.namespace", read_only=True)
    name = serializers.SerializerMethodField()
    job = serializers.UUIDField(source="job.uid", read_only=True)
    job_name = serializers.CharField(source="job.name", read_only=True)
    kind = serializers.CharField(source="job.kind", read_only=True)
    state = serializers.CharField(source="job.state", read_only=True)

    class Meta(JobBindingSerializer.Meta):
        fields = (
            "id", "namespace", "name", "job", "job_name", "kind", "state", *JobBindingSerializer.Meta.fields,
            "resource_version",
        )  # fmt: skip
        read_only_fields = fields

    def get_name(self, binding: Binding) -> str:
        return f"{binding.job.name}-{registry.spelled(binding.job.api_version, binding.job.kind)}"


class DependentSerializer(serializers.ModelSerializer[Dependent]):
    """Names only: what is in a ConfigMap or a Secret leaves by no door."""

    id = serializers.UUIDField(source="uid", read_only=True)

    class Meta:
        model = Dependent
        fields = ("id", "kind", "namespace", "name", "generation", "created_at", "resource_version")
        read_only_fields = fields


class AppliedSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    id = serializers.CharField(source="uid", help_text="as in the paths of jobs, policies and dependents")
    action = serializers.ChoiceField(["created", "configured", "unchanged"])
    warnings = serializers.ListField(child=serializers.CharField())


class AppliedListSerializer(serializers.Serializer[Any]):
    results = AppliedSerializer(many=True)


class DeletedSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(["deleted", "deleting", "absent"])


class DeletedListSerializer(serializers.Serializer[Any]):
    results = DeletedSerializer(many=True)
