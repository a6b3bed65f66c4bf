"""How supply looks in JSON. Credentials are in no shape here, and none may be added."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from fleet.core import devices
from fleet.core.security import token_scopes
from fleet.errors import FieldFault, InvalidInput
from fleet.models import Cluster, Event, Node, NodeExclusion, Token, agent_state, credentials_state


class CountSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    ready = serializers.IntegerField()


class ClusterJobsSerializer(serializers.Serializer[Any]):
    running = serializers.IntegerField()
    placed = serializers.IntegerField(help_text="decided for this cluster, not running yet")


class AmountSerializer(serializers.Serializer[Any]):
    """Whole units: milli-CPU, bytes, devices."""

    allocatable = serializers.IntegerField()
    requested = serializers.IntegerField()
    held = serializers.IntegerField()
    free = serializers.IntegerField()


class TaintSerializer(serializers.Serializer[Any]):
    key = serializers.CharField(max_length=317)
    value = serializers.CharField(max_length=63, required=False, allow_blank=True)
    effect = serializers.ChoiceField(["NoSchedule", "PreferNoSchedule", "NoExecute"])
    timeAdded = serializers.CharField(required=False)  # noqa: N815


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    """Wants clusters that went through `fleet.api.supply.attach`."""

    reason = serializers.CharField(source="state_reason", read_only=True)
    message = serializers.CharField(source="state_message", read_only=True)
    raw = serializers.CharField(source="state_raw", read_only=True, help_text="the network error, verbatim")
    labels = serializers.DictField(child=serializers.CharField(), read_only=True)
    simulated = serializers.BooleanField(read_only=True, help_text="played by the simulator beside this product")
    taints = TaintSerializer(many=True, read_only=True)
    nodes = CountSerializer(source="supply.nodes", read_only=True)
    capacity = serializers.DictField(source="supply.capacity", child=AmountSerializer(), read_only=True)
    gpus = AmountSerializer(
        source="supply.gpus", read_only=True, help_text="devices of all resources that are GPUs or other accelerators"
    )
    jobs = ClusterJobsSerializer(source="supply.jobs", read_only=True)
    apis = serializers.DictField(child=serializers.DictField(child=serializers.CharField()), read_only=True)

    scheduler = serializers.CharField(source="offer.scheduler", read_only=True)
    reservations = serializers.CharField(
        source="offer.refusal",
        read_only=True,
        help_text="why it cannot hold capacity before a job is sent; empty: it can",
    )

    class Meta:
        model = Cluster
        fields: tuple[str, ...] = (
            "name", "uid", "state", "reason", "message", "raw", "state_since", "cordoned", "drained", "version", "provider",
            "impersonation", "region", "zone", "labels", "taints", "last_heartbeat", "synced_at", "stale_since",
            "circuit_opened_at", "circuit_probe_at", "joined_at", "nodes", "capacity", "gpus", "jobs", "apis", "scheduler",
            "reservations", "simulated",
            "resource_version",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = fields


class PermissionSerializer(serializers.Serializer[Any]):
    verb = serializers.CharField()
    resource = serializers.CharField()
    allowed = serializers.BooleanField()
    needed_for = serializers.CharField()


class CredentialsStateSerializer(serializers.Serializer[Any]):
    on = serializers.BooleanField(help_text="whether the member is asked for tokens that end")
    short_lived = serializers.BooleanField(help_text="whether such a token is used there now")
    reason = serializers.CharField()
    message = serializers.CharField()
    since = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)


class AgentStateSerializer(serializers.Serializer[Any]):
    answers = serializers.BooleanField(help_text="whether an agent in the cluster answers the fleet's renewals")
    reason = serializers.CharField()
    message = serializers.CharField()
    seen_at = serializers.DateTimeField(allow_null=True, help_text="the last renewal that it answered")


class ClusterDetailSerializer(ClusterSerializer):
    permissions = PermissionSerializer(many=True, read_only=True)
    credentials = serializers.SerializerMethodField(help_text="as the condition ShortLivedCredentials; never the token")
    agent = serializers.SerializerMethodField(help_text="as the condition FencingAgent")

    class Meta(ClusterSerializer.Meta):
        fields = (*ClusterSerializer.Meta.fields, "permissions", "credentials", "agent")
        read_only_fields = fields

    @extend_schema_field(CredentialsStateSerializer)
    def get_credentials(self, cluster: Cluster) -> Mapping[str, Any]:
        return CredentialsStateSerializer(credentials_state(cluster)).data

    @extend_schema_field(AgentStateSerializer)
    def get_agent(self, cluster: Cluster) -> Mapping[str, Any]:
        return AgentStateSerializer(agent_state(cluster)).data


class JoinSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63)
    kubeconfig = serializers.CharField(
        max_length=256 * 1024, trim_whitespace=False, help_text="the file's text; credentials are encrypted at rest"
    )
    context = serializers.CharField(  # type: ignore[assignment]  # DRF moves declared fields away
        required=False, allow_blank=True, default="", max_length=253
    )
    labels = serializers.DictField(child=serializers.CharField(allow_blank=True, max_length=63), required=False)


class CredentialsSerializer(serializers.Serializer[Any]):
    kubeconfig = serializers.CharField(
        max_length=256 * 1024, trim_whitespace=False, help_text="the file's text; it must lead to the same cluster"
    )
    context = serializers.CharField(  # type: ignore[assignment]  # DRF moves declared fields away
        required=False, allow_blank=True, default="", max_length=253
    )


class ImpersonationSerializer(serializers.Serializer[Any]):
    on = serializers.BooleanField(
        help_text="whether the member is asked in the names of persons, so that its own RBAC and audit see them"
    )


class ShortLivedTokensSerializer(serializers.Serializer[Any]):
    on = serializers.BooleanField(
        help_text="whether the member is asked for tokens that end; true asks again where it issued none"
    )


class CheckSerializer(serializers.Serializer[Any]):
    name = serializers.ChoiceField(["name", "kubeconfig", "answer", "kinds", "rights", "new"])
    ok = serializers.BooleanField()
    detail = serializers.CharField()


class ChecksSerializer(serializers.Serializer[Any]):
    """Up to the first that fails."""

    ok = serializers.BooleanField(help_text="it may join")
    checks = CheckSerializer(many=True)


class ClusterChangeSerializer(serializers.Serializer[Any]):
    """What is given replaces what was there."""

    labels = serializers.DictField(child=serializers.CharField(allow_blank=True, max_length=63), required=False)
    taints = TaintSerializer(many=True, required=False)


class ExcludeNodeSerializer(serializers.Serializer[Any]):
    hours = serializers.FloatField(min_value=0.1, max_value=2160, help_text="for how long the node takes no new pods")
    why = serializers.CharField(default="", allow_blank=True, max_length=200, help_text="shown to everybody")


class DrainNodeSerializer(serializers.Serializer[Any]):
    why = serializers.CharField(default="", allow_blank=True, max_length=200, help_text="shown to everybody")


class NodeLabelsSerializer(serializers.Serializer[Any]):
    labels = serializers.DictField(
        child=serializers.CharField(allow_null=True, allow_blank=True, max_length=63),
        required=False,
        help_text="null removes a label",
    )
    overwrite = serializers.BooleanField(default=False, help_text="whether labels that have another value are changed")
    exclude = ExcludeNodeSerializer(
        required=False,
        allow_null=True,
        write_only=True,
        help_text="takes the node out of the placement for a while; null lets it take pods again",
    )


class AddonSerializer(serializers.Serializer[Any]):
    """As the member says it now."""

    name = serializers.CharField()
    cluster = serializers.CharField()
    namespace = serializers.CharField(help_text="in the member")
    state = serializers.ChoiceField(["Running", "NotReady", "NotInstalled", "Unknown"])
    ready = serializers.IntegerField(help_text="pods of it that are ready")
    pods = serializers.IntegerField()
    holder = serializers.CharField(help_text="the process of it that acts")
    renewed_at = serializers.CharField(help_text="when that last said so, by the member's clock")
    message = serializers.CharField(help_text="why it does not run, or is not known")


class InstallSerializer(serializers.Serializer[Any]):
    name = serializers.ChoiceField(["elastic-job-supervisor"], default="elastic-job-supervisor")
    image = serializers.CharField(max_length=500, help_text="the product's image, as the cluster pulls it")


class ReclaimSerializer(serializers.Serializer[Any]):
    notice_s = serializers.FloatField(
        default=120.0, min_value=0, max_value=3600, help_text="simulated seconds until the node is taken back"
    )


class NodeExclusionSerializer(serializers.ModelSerializer[NodeExclusion]):
    """Why a node takes no new pods of anybody, and until when."""

    class Meta:
        model = NodeExclusion
        fields = ("reason", "message", "since", "until", "by", "drains")
        read_only_fields = fields


class NodeJobExclusionSerializer(serializers.ModelSerializer[NodeExclusion]):
    """Why a node takes no new pods of one job, and until when."""

    job = serializers.CharField(read_only=True, help_text="namespace and name")

    class Meta:
        model = NodeExclusion
        fields = ("job", "reason", "message", "since", "until")
        read_only_fields = fields


class NodeGpuAmountSerializer(serializers.Serializer[Node]):
    """GPUs and other accelerators of a node, of all resources together."""

    allocatable = serializers.SerializerMethodField()
    requested = serializers.SerializerMethodField()
    reclaimable = serializers.SerializerMethodField(help_text="what of the requested best-effort pods have")

    def get_allocatable(self, node: Node) -> int:
        return devices.count(node.allocatable)

    def get_requested(self, node: Node) -> int:
        return devices.count(node.requested, node.allocatable)

    def get_reclaimable(self, node: Node) -> int:
        return devices.count(node.reclaimable, node.allocatable)


class NodeSerializer(serializers.ModelSerializer[Node]):
    cluster = serializers.CharField(source="cluster.name", read_only=True)
    labels = serializers.DictField(child=serializers.CharField(), read_only=True)
    taints = TaintSerializer(many=True, read_only=True)
    allocatable = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    requested = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    reclaimable = serializers.DictField(
        child=serializers.IntegerField(),
        read_only=True,
        help_text="what of the requested best-effort pods ask: their places may be taken back at any time",
    )
    gpus = NodeGpuAmountSerializer(source="*", read_only=True)
    excluded = NodeExclusionSerializer(
        source="exclusion", read_only=True, allow_null=True, default=None, help_text="null: it takes pods"
    )
    excluded_for = NodeJobExclusionSerializer(
        source="job_exclusions",
        many=True,
        read_only=True,
        default=list,
        help_text="jobs that do not meet it for a while, of namespaces that the caller reads; the latest 20",
    )

    class Meta:
        model = Node
        fields = (
            "name",
            "cluster",
            "address",
            "ready",
            "unschedulable",
            "labels",
            "taints",
            "allocatable",
            "requested",
            "reclaimable",
            "gpus",
            "problem",
            "excluded",
            "excluded_for",
        )
        read_only_fields = fields


class RegardingSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="regarding_kind")
    namespace = serializers.CharField(source="regarding_namespace")
    name = serializers.CharField(source="regarding_name")
    uid = serializers.CharField(source="regarding_uid")


class EventSerializer(serializers.ModelSerializer[Event]):
    id = serializers.UUIDField(source="uid", read_only=True)
    regarding = RegardingSerializer(source="*", read_only=True)

    class Meta:
        model = Event
        fields = ("id", "regarding", "type", "reason", "message", "source", "first_at", "last_at", "count")
        read_only_fields = fields


class ScopeSerializer(serializers.Serializer[Any]):
    """What a token may be used for at the most; what is left out is not limited."""

    verbs = serializers.ListField(child=serializers.CharField(), required=False, help_text="such as read")
    kinds = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="as roles name them: Job for every kind of job, Metrics",
    )
    namespaces = serializers.ListField(child=serializers.CharField(), required=False)


class TokenSerializer(serializers.ModelSerializer[Token]):
    expires_at = serializers.DateTimeField(source="ends_at", read_only=True)
    scope = ScopeSerializer(read_only=True, allow_null=True, help_text="null: everything its user may do")
    parent_id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="the token that minted it, with which it ends"
    )
    minted_by = serializers.CharField(
        source="minted_by.username", read_only=True, allow_null=True, default=None, help_text="null: on the machine"
    )

    class Meta:
        model = Token
        fields: tuple[str, ...] = (
            *(
                "id",
                "name",
                "created_at",
                "expires_at",
                "revoked_at",
                "last_used_at",
                "scope",
                "parent_id",
                "minted_by",
            ),
        )
        read_only_fields: tuple[str, ...] = fields


class NewTokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63)
    expires_in_s = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, help_text="else as long as CONVOY_TOKEN_MAX_S allows"
    )
    or_shorter = serializers.BooleanField(
        required=False, help_text="end with the token in use where that ends earlier, and not be refused"
    )
    scope = ScopeSerializer(required=False, allow_null=True, help_text="else everything its user may do")

    def to_internal_value(self, data: Any) -> Any:
        """A limit that is not understood is refused, never left out: the token would be wider than it was meant."""
        scope = data.get("scope") if isinstance(data, Mapping) else None
        if faults := [FieldFault(*fault) for fault in token_scopes.faults(scope)] if isinstance(scope, Mapping) else []:
            raise InvalidInput("; ".join(f"{fault.field} {fault.detail}" for fault in faults), tuple(faults))
        return super().to_internal_value(data)


def new_token(request: Request) -> dict[str, Any]:
    """What is asked for, as `fleet.services.authorization.access.mint` takes it, with the token by which it is asked."""
    body = NewTokenSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    seconds, scope = body.validated_data.get("expires_in_s"), body.validated_data.get("scope")
    return {
        "name": body.validated_data["name"],
        "life": None if seconds is None else timedelta(seconds=min(seconds, 10**10)),
        "scope": None if scope is None else token_scopes.from_json(scope),
        "by": request.auth,
        "minted_by": request.user,
        "or_shorter": body.validated_data.get("or_shorter", False),
    }


class MintedTokenSerializer(TokenSerializer):
    token = serializers.CharField(read_only=True, help_text="shown this once")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")
        read_only_fields = fields


class RoleSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    namespace = serializers.CharField(help_text="empty: all namespaces")


class MeSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    roles = RoleSerializer(many=True)
    can = serializers.SerializerMethodField()

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "boolean"}})
    def get_can(self, me: dict[str, Any]) -> dict[str, bool]:
        return dict(me["can"])


class SessionSerializer(serializers.Serializer[Any]):
    signed_in = serializers.BooleanField()
    username = serializers.CharField()
    process_pods = serializers.BooleanField(
        help_text="pods of some namespaces may run as processes of the server's machine"
    )
    oidc = serializers.CharField(
        help_text="the company's OpenID Connect provider, with whose accounts /oidc/signin/ signs in; empty: none"
    )


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457 problem details."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = serializers.ListField(  # type: ignore[assignment]  # DRF moves declared fields away
        child=serializers.DictField(child=serializers.CharField()), required=False
    )
