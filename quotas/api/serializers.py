"""How entitlement looks in JSON. Amounts are whole units: milli-CPU, bytes, devices, jobs."""

from typing import Any

from rest_framework import serializers

from quotas.core.trees.tree import ExcessPolicy
from quotas.models import Queue, QuotaRevision


class QuotaAmountSerializer(serializers.Serializer[Any]):
    used = serializers.IntegerField()
    requested = serializers.IntegerField(help_text="used, and what waits for it")
    min = serializers.IntegerField()
    max = serializers.IntegerField(allow_null=True, help_text="null: only the nodes above limit it")
    borrowed = serializers.IntegerField(help_text="used above min")
    lent = serializers.IntegerField(help_text="of its min, what others use now")


class UserHoursSerializer(serializers.Serializer[Any]):
    user = serializers.CharField(allow_blank=True, help_text="empty: jobs that an older version took")
    gpu_hours = serializers.FloatField()


class NodeShareSerializer(serializers.Serializer[Any]):
    """What a node is compared by with its siblings: the least comes first, and is the last to give back."""

    borrowed = serializers.FloatField(
        allow_null=True,
        help_text="the largest part of any resource that it borrows now, divided by its weight; null: it has weight 0",
    )
    recent = serializers.FloatField(
        allow_null=True,
        help_text="of the GPU-hours that all siblings used lately; null: those do not count here, or are none",
    )
    entitled = serializers.FloatField(allow_null=True, help_text="of the weights of all siblings; null: they have none")


class BudgetSerializer(serializers.Serializer[Any]):
    """What is used of a budget: GPUs × time from the placement of each attempt to its end."""

    gpu_hours = serializers.FloatField(source="budget.gpu_hours")
    per = serializers.CharField(source="budget.per", help_text="day, week, month, quarter or year, by UTC")
    when_spent = serializers.CharField(source="budget.when_spent", help_text="Wait, BorrowNothing or Stop")
    used_gpu_hours = serializers.FloatField(source="used_hours", help_text="since the beginning of the period")
    begin = serializers.DateTimeField()
    end = serializers.DateTimeField(help_text="when it is renewed")
    is_spent = serializers.BooleanField()
    running_gpus = serializers.IntegerField(source="running")
    forecast_gpu_hours = serializers.FloatField(
        source="forecast_hours", help_text="used at the end of the period if what runs now runs on"
    )
    spent_at = serializers.DateTimeField(
        allow_null=True, help_text="when it is spent at that rate; null: not before it is renewed, or it is spent"
    )


class WindowSerializer(serializers.Serializer[Any]):
    """A time when a node has another min or max."""

    begin = serializers.DateTimeField()
    end = serializers.DateTimeField()
    is_open = serializers.BooleanField(help_text="whether its amounts hold now")
    min = serializers.DictField(child=serializers.IntegerField(), help_text="only what it sets")
    max = serializers.DictField(child=serializers.IntegerField(), help_text="only what it sets")


class QuotaNodeSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    name = serializers.CharField()
    parent = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # DRF moves declared fields away
    leaf = serializers.BooleanField()
    namespaces = serializers.ListField(child=serializers.CharField())
    attributes = serializers.DictField(child=serializers.CharField(), help_text="as written in the manifest")
    queue = serializers.CharField(allow_blank=True, help_text="the name of its queue")
    queue_state = serializers.ChoiceField(Queue.State.choices, allow_blank=True)
    queue_state_by = serializers.CharField(allow_blank=True)
    queue_comment = serializers.CharField(allow_blank=True, help_text="the reason given for its state; empty: none")
    may_run = serializers.BooleanField(help_text="whether you may hold, drain, stop and open its queue")
    may_edit = serializers.BooleanField(help_text="whether you may change it")
    may_add = serializers.BooleanField(help_text="whether you may put nodes below it")
    resources = serializers.DictField(child=QuotaAmountSerializer())
    recent_gpu_hours = serializers.FloatField(
        allow_null=True, help_text="used lately, faded; null: no node of the tree has `fair-share: OverTime`"
    )
    share = NodeShareSerializer(
        allow_null=True, help_text="null: its parent has neither `reclaim: FairShare` nor `fair-share: OverTime`"
    )
    budget = BudgetSerializer(allow_null=True, help_text="null: it has none")
    windows = WindowSerializer(many=True, help_text="what is open of its windows and what opens next, within 31 days")
    users = UserHoursSerializer(
        many=True, help_text="of a leaf, the most first; only your own unless you may run its queue"
    )


class OutsideSerializer(serializers.Serializer[Any]):
    """Jobs that belong to no leaf."""

    running = serializers.IntegerField(help_text="jobs that run, charged to no quota")
    waiting = serializers.IntegerField()
    gpus = serializers.IntegerField(help_text="what those that run hold; no min can take them back")


class QuotaTreeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    uid = serializers.UUIDField()
    generation = serializers.IntegerField()
    resource_version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    changed_by = serializers.CharField()
    manifest = serializers.DictField()
    warnings = serializers.ListField(child=serializers.CharField())
    nodes = QuotaNodeSerializer(many=True, help_text="parents before their children")
    outside_jobs = serializers.CharField(help_text="Wait or Run: what becomes of jobs that belong to no leaf")
    outside = OutsideSerializer()


class SavedSerializer(serializers.Serializer[Any]):
    action = serializers.CharField(help_text="created, configured or unchanged")
    generation = serializers.IntegerField(source="row.generation")
    warnings = serializers.ListField(child=serializers.CharField())


class SavingSerializer(serializers.Serializer[Any]):
    comment = serializers.CharField(required=False, allow_blank=True, default="", max_length=500)
    generation = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0,
        help_text="the generation you looked at: the save is refused when it is another by now",
    )  # fmt: skip


class ManifestSerializer(SavingSerializer):
    """Either of the two."""

    manifest = serializers.DictField(required=False)
    yaml = serializers.CharField(required=False, trim_whitespace=False)


class QuotaChangeSerializer(serializers.Serializer[Any]):
    """What to give: edit path, set; add parent, node; remove path; move path, parent; rename path, name."""

    op = serializers.ChoiceField(["edit", "add", "remove", "move", "rename"])
    path = serializers.CharField(required=False)
    parent = serializers.CharField(required=False)  # type: ignore[assignment]  # DRF moves declared fields away
    index = serializers.IntegerField(required=False, min_value=0)
    name = serializers.CharField(required=False)
    set = serializers.DictField(required=False, help_text="only what is named changes; null takes a key away")
    node = serializers.DictField(required=False, help_text="a quota as in the manifest")


class ChangesSerializer(SavingSerializer):
    changes = QuotaChangeSerializer(many=True)


class PreviewRequestSerializer(serializers.Serializer[Any]):
    """Changes, a manifest, or a file."""

    simulate = serializers.BooleanField(
        required=False, default=True, help_text="false: only what is wrong with it, and nothing of its effect on jobs"
    )
    changes = QuotaChangeSerializer(many=True, required=False)
    manifest = serializers.DictField(required=False)
    yaml = serializers.CharField(required=False, trim_whitespace=False)


class PlacedFaultSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(allow_blank=True)
    field = serializers.CharField()
    detail = serializers.CharField()


class EffectLineSerializer(serializers.Serializer[Any]):
    job = serializers.CharField(help_text="empty when it is not the caller's to see")
    leaf = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()
    lost_gpu_hours = serializers.FloatField(
        help_text="of work that a job has not saved when it is stopped; 0 otherwise"
    )
    not_before = serializers.DateTimeField(
        allow_null=True, help_text="when it may first be stopped, by the min-runtime of queues; null: at once"
    )


class ExcessSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    resource = serializers.CharField()
    used = serializers.IntegerField()
    limit = serializers.IntegerField()
    bound = serializers.CharField(help_text="min or max")
    policy = serializers.ChoiceField(
        [(policy.value, policy.name) for policy in ExcessPolicy],
        help_text="what follows, by the node's attribute excess: the change is refused; nothing starts there until enough"
        " jobs have ended; or jobs are evicted",
    )
    jobs = serializers.ListField(
        child=serializers.CharField(),
        help_text="would have to end, or are evicted: those that lose least; empty: not the caller's to see",
    )
    lost_gpu_hours = serializers.FloatField(
        help_text="of work that these jobs have not saved, where they are evicted; 0 otherwise"
    )
    message = serializers.CharField()


class EffectSerializer(serializers.Serializer[Any]):
    starts = EffectLineSerializer(many=True, help_text="run then, and would not without the change")
    waits = EffectLineSerializer(many=True, help_text="wait then, and would start without the change")
    reclaimed = EffectLineSerializer(many=True, help_text="run now, and are evicted because of the change")
    unbound = serializers.ListField(
        child=serializers.CharField(),
        help_text="have a leaf now, and none then; empty: not the caller's to see",
    )
    excess = ExcessSerializer(many=True, help_text="nodes that have more running than the change allows")


class PreviewSerializer(serializers.Serializer[Any]):
    saves = serializers.BooleanField(help_text="whether it could be saved")
    faults = PlacedFaultSerializer(many=True)
    refusals = serializers.ListField(child=serializers.CharField())
    warnings = serializers.ListField(child=serializers.CharField())
    touched = serializers.ListField(child=serializers.CharField(), help_text="paths of nodes that differ")
    effect = EffectSerializer()
    outside = OutsideSerializer(help_text="jobs that would belong to no leaf")
    manifest = serializers.DictField()


class RevisionSerializer(serializers.ModelSerializer[QuotaRevision]):
    class Meta:
        model = QuotaRevision
        fields: tuple[str, ...] = ("generation", "by", "at", "comment", "source")
        read_only_fields: tuple[str, ...] = fields


class DifferenceSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)


class RevisionDetailSerializer(RevisionSerializer):
    manifest = serializers.DictField(allow_null=True)
    differences = DifferenceSerializer(many=True, help_text="against the generation before")

    class Meta(RevisionSerializer.Meta):
        fields = (*RevisionSerializer.Meta.fields, "manifest", "differences")
        read_only_fields = fields


class RevertSerializer(SavingSerializer):
    to = serializers.IntegerField(min_value=1)


class QueueSerializer(serializers.ModelSerializer[Queue]):
    may_change = serializers.SerializerMethodField(help_text="whether you may hold, drain, stop and open it")

    def get_may_change(self, queue: Queue) -> bool:
        return bool(self.context["scope"].may_run(queue.path))

    class Meta:
        model = Queue
        fields = (
            "name", "uid", "path", "leaf", "state", "state_by", "state_at", "state_comment", "may_change",
            "created_at", "resource_version",
        )  # fmt: skip
        read_only_fields = fields


class QueueStateSerializer(serializers.Serializer[Any]):
    comment = serializers.CharField(required=False, allow_blank=True, default="", max_length=500)
