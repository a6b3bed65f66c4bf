"""The product's own health for signed-in users: the answer of the readiness probe, always with status 200."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http import probes
from fleet.api.http.permissions import OfOneself
from fleet.api.http.recent_checks import RECENT
from fleet.core.members import health
from fleet.models import Cluster
from fleet.services.auditing import audit_sinks
from fleet.services.authorization import access

_SHOWN = 5
CHECKS: dict[str, Callable[[], str]] = {}
"""What the other parts of the product ask of themselves, by name; each says so itself when it starts. May read many rows."""


class SystemCheckSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(
        help_text="database, migrations, broker, worker, beat, watcher, scheduler, members, audit, placements or copies"
    )
    ok = serializers.BooleanField()
    detail = serializers.CharField(default="")
    age_s = serializers.FloatField(default=None, allow_null=True, help_text="since it was last heard of")


class SystemSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    checks = SystemCheckSerializer(many=True)


class SystemView(APIView):
    kind = "Process"
    verbs: dict[str, str] = {}
    permission_classes = [OfOneself]

    @extend_schema(responses=SystemSerializer)
    def get(self, request: Request) -> Response:
        ok, checks = probes.check_readiness()
        more = {"members": probes.run_check(_members), "audit": probes.run_check(_audit)}
        more |= {name: RECENT.run(check) for name, check in CHECKS.items()}
        checks |= more
        ok = ok and all(check["ok"] for check in more.values())
        shown = [{"name": name, **_shown(name, check, request.user)} for name, check in checks.items()]
        return Response(SystemSerializer({"ok": ok, "checks": shown}).data)


def _shown(name: str, check: probes.Check, user: Any) -> probes.Check:
    """Details name clusters, which takes a role, and addresses of audit sinks, which are a fleet admin's to know."""
    is_for_user = access.may(user, access.READ, "Audit") if name == "audit" else bool(access.roles(user))
    return check if is_for_user else {key: value for key, value in check.items() if key != "detail"}


def _audit() -> str:
    """Which sinks do not take the audit's lines, so that these are kept."""
    return "; ".join(f"sink {sink.name}: {sink.error}" for sink in audit_sinks.failing())


def _members() -> str:
    """Members that cannot be observed because of a fault of Convoy, so that their jobs are not moved."""
    rows = Cluster.objects.filter(state_reason__in=health.UNJUDGED).order_by("name")
    unobserved = [f"{name} ({reason})" for name, reason in rows.values_list("name", "state_reason")]
    if not unobserved:
        return ""
    more = f" and {len(unobserved) - _SHOWN} more" if len(unobserved) > _SHOWN else ""
    return f"not observed, their jobs are not moved: {', '.join(unobserved[:_SHOWN])}{more}"
