"""How demand looks in JSON: jobs, what was decided for them, policies, and the names (only) of what travels along."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.core import devices
from fleet.services.authorization import access
from jobs import queries
from jobs.api.diagnosis import DiagnosisSerializer
from jobs.api.placement import PlacementSerializer, placement_of
from jobs.api.progress import ProgressSerializer
from jobs.core.failover.causes import Cause
from jobs.core.failover.lifecycle import Action
from jobs.core.life.shares import ShareState
from jobs.kinds import registry
from jobs.kinds.base import without_resolved
from jobs.models import Attempt, Binding, Dependent, Job, Policy
from jobs.services.lifecycle import sizes
from jobs.services.lifecycle.copies import other_copies, state_preservation
from jobs.services.lifecycle.copies.other_copies import CopyCode
from jobs.services.submission.changes import actions as submission_actions
from quotas.core.queues.job_names import namespace_of


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
    blocker = serializers.CharField(
        required=False, help_text="the job that holds up the queue; empty when it is not the caller's to see"
    )
    queue = serializers.CharField(required=False, help_text="the queue that is closed")
    state = serializers.CharField(required=False, help_text="of that queue")
    from_jobs = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="jobs that leave for it; empty names are not the caller's to see",
    )
    until = serializers.DateTimeField(
        required=False,
        allow_null=True,
        help_text="when they are gone at the latest, the budget is renewed, or the window ends",
    )
    used_gpu_hours = serializers.FloatField(required=False, help_text="of the budget that is spent")
    gpu_hours = serializers.FloatField(required=False, help_text="the budget")
    per = serializers.CharField(required=False, help_text="the period of the budget")
    window = serializers.CharField(required=False, help_text="the node of the window that lies ahead")
    begin = serializers.DateTimeField(required=False, help_text="when that window begins")
    ends = serializers.DateTimeField(
        required=False, allow_null=True, help_text="when the job would have ended at the latest; null: nothing says"
    )

    def to_representation(self, verdict: Any) -> dict[str, Any]:
        """Without the names of jobs that the reader may not see; without a reader, without any."""
        shown: dict[str, Any] = super().to_representation(verdict)
        request = self.context.get("request")
        sees = access.sees(request.user) if request else _sees_none
        if "blocker" in shown:
            shown["blocker"] = visible_name(shown["blocker"], sees)
        if "from_jobs" in shown:
            shown["from_jobs"] = [visible_name(name, sees) for name in shown["from_jobs"]]
        return shown


def visible_name(name: str, sees: Callable[[str], bool]) -> str:
    """``namespace/name``, with its kind or without; empty when the reader may not read the namespace."""
    return name if sees(namespace_of(name)) else ""


def _sees_none(namespace: str) -> bool:
    return False


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
    gpus = serializers.SerializerMethodField()

    def get_gpus(self, role: Mapping[str, Any]) -> int:
        """Devices of one pod, of all resources that are GPUs or other accelerators."""
        return devices.count(role["request"])


class RoleSizeSerializer(serializers.Serializer[Any]):
    replicas = serializers.IntegerField(help_text="the size in force")
    min = serializers.IntegerField()
    max = serializers.IntegerField(allow_null=True, help_text="null: the quota's alone")


class GrowthSerializer(serializers.Serializer[Any]):
    """A growth that waits for quota and for room on the job's cluster."""

    sizes = serializers.DictField(child=serializers.IntegerField(), help_text="pods by role")
    by = serializers.CharField()
    at = serializers.DateTimeField()
    reason = ReasonSerializer(required=False, help_text="why the job has not grown yet")


class ResizeSerializer(serializers.Serializer[Any]):
    role = serializers.CharField(
        default="", allow_blank=True, max_length=253, help_text="may be left out where only one role can be resized"
    )
    replicas = serializers.IntegerField(min_value=0, max_value=2**31 - 1)


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


class JobListSerializer(serializers.ListSerializer[Any]):
    """Counts the pods of all jobs at once."""

    child: "JobSerializer"

    def to_representation(self, data: Any) -> Any:
        jobs = list(data)
        self.child.running_pods = queries.running_pods(jobs)
        return super().to_representation(jobs)


class JobSerializer(serializers.ModelSerializer[Job]):
    running_pods: Mapping[UUID, int] | None = None
    """Of each job of a list; None: it is one job alone."""
    id = serializers.UUIDField(source="uid", read_only=True)
    state = StateField(read_only=True)
    cluster = serializers.CharField(source="cluster.name", default=None, read_only=True, allow_null=True)
    policy = PolicyNameSerializer(read_only=True, allow_null=True)
    labels = serializers.DictField(child=serializers.CharField(), read_only=True)
    reason = ReasonSerializer(read_only=True, allow_null=True)
    roles = GangRoleSerializer(many=True, read_only=True)
    total = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    size = serializers.DictField(
        child=RoleSizeSerializer(),
        read_only=True,
        allow_null=True,
        help_text="by role; null: not resized while it runs",
    )
    resize = serializers.SerializerMethodField(help_text="the growth that waits; null: none does")
    progress = ProgressSerializer(read_only=True, allow_null=True, default=None, help_text="null: it reports none")
    ran_s = serializers.SerializerMethodField(
        help_text="seconds that all its pods ran, over its attempts that have ended; without moves and waits"
    )
    runs_since = serializers.SerializerMethodField(
        help_text="since when all pods of its current attempt run; null: they do not"
    )
    pods_running = serializers.SerializerMethodField(
        help_text="pods of its current attempt that run now, of all that its roles have; 0 once it has ended"
    )
    actions = serializers.SerializerMethodField()

    class Meta:
        model = Job
        list_serializer_class = JobListSerializer
        fields: tuple[str, ...] = (
            "id", "kind", "api_version", "namespace", "name", "labels", "state", "reason", "cluster", "attempt",
            "created_at", "queued_at", "started_at", "finished_at", "deleting_at", "roles", "size", "resize", "gpus", "total",
            "pods_running", "progress", "priority", "submitted_by", "ran_s", "runs_since",
            "suspended", "policy", "leaf", "preemptible", "resource_version", "actions",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields

    @extend_schema_field(GrowthSerializer(allow_null=True))
    def get_resize(self, job: Job) -> dict[str, Any] | None:
        growth = sizes.shown(job)
        return None if growth is None else dict(GrowthSerializer(growth, context=self.context).data)

    def get_pods_running(self, job: Job) -> int:
        counts = queries.running_pods([job]) if self.running_pods is None else self.running_pods
        return counts.get(job.uid, 0)

    def get_ran_s(self, job: Job) -> int:
        times = [(each.started_at, each.ended_at) for each in job.attempts.all()]
        return int(sum((ended - started).total_seconds() for started, ended in times if started and ended))

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_runs_since(self, job: Job) -> Any:
        open_runs = [each.started_at for each in job.attempts.all() if each.started_at and each.ended_at is None]
        return min(open_runs, default=None)

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


class PreservedStateSerializer(serializers.Serializer[Any]):
    """A value that the job's policy keeps for later attempts."""

    name = serializers.CharField(help_text="aliasLabelName of the rule")
    value = serializers.CharField(allow_blank=True)
    attempt = serializers.IntegerField(help_text="the attempt that reported it; 0: there is no value yet")
    at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(allow_blank=True, help_text="why a later value is not kept; empty: there is none")


@extend_schema_field({"allOf": [{"type": "string", "enum": [code.value for code in CopyCode]}]})
class CopyCodeField(serializers.CharField):
    """As `StateField`."""


class OtherCopySerializer(serializers.Serializer[Any]):
    """A copy of an attempt that the job has left, which may run beside the current one."""

    code = CopyCodeField()
    message = serializers.CharField()
    attempt = serializers.IntegerField()
    cluster = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True, help_text="when the job left it")
    current = serializers.IntegerField(help_text="the attempt that counts")


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

    other_copies = serializers.SerializerMethodField(help_text="copies that may run beside its current one")
    preserved_state = serializers.SerializerMethodField(help_text="what its later attempts get; empty without rules")

    class Meta(JobSerializer.Meta):
        fields = (
            *JobSerializer.Meta.fields, "generation", "manifest", "status", "shares", "binding", "placement",
            "preserved_state", "other_copies",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(OtherCopySerializer(many=True))
    def get_other_copies(self, job: Job) -> list[dict[str, Any]]:
        return [dict(OtherCopySerializer(copy).data) for copy in other_copies.beside(job)]

    @extend_schema_field(PreservedStateSerializer(many=True))
    def get_preserved_state(self, job: Job) -> list[dict[str, Any]]:
        return [dict(PreservedStateSerializer(value).data) for value in state_preservation.shown(job)]

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


class FormerSizeSerializer(serializers.Serializer[Any]):
    until = serializers.DateTimeField()
    gpus = serializers.IntegerField()


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    cluster = serializers.CharField(source="cluster_name", read_only=True)
    cause = serializers.SerializerMethodField(help_text="why it failed; null: it did not, or that is not known yet")
    evidence = serializers.SerializerMethodField(help_text="the pods that show the cause, at most 20")
    diagnosis = serializers.SerializerMethodField(help_text="null: it did not fail, or is not diagnosed yet")
    explanation = ShortSerializer(many=True, read_only=True, help_text="what it was placed by: clusters, best first")
    gpus = serializers.IntegerField(read_only=True, allow_null=True, help_text="null: all that its job has")
    sizes = FormerSizeSerializer(source="former_sizes", many=True, read_only=True, help_text="before each resize")

    class Meta:
        model = Attempt
        fields = (
            "number", "cluster", "placed_at", "started_at", "ended_at", "outcome", "message", "cause", "evidence",
            "diagnosis", "explanation", "gpus", "sizes",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(PodEndSerializer(many=True))
    def get_evidence(self, attempt: Attempt) -> list[dict[str, Any]]:
        return attempt.evidence or []

    @extend_schema_field(DiagnosisSerializer(allow_null=True))
    def get_diagnosis(self, attempt: Attempt) -> dict[str, Any] | None:
        return attempt.diagnosis

    @extend_schema_field(FailureCauseField(allow_null=True))
    def get_cause(self, attempt: Attempt) -> str | None:
        return attempt.cause or None


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
