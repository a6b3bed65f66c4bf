"""Whether the product is ready, and its numbers: for load balancers and Prometheus. Liveness is answered in `liveness`."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Max
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from fleet.db import clock, migrated
from fleet.models import Heartbeat
from fleet.services.operations import lease_requests
from fleet.services.watching import leases

FRESH = timedelta(seconds=30)
ROLES = ("worker", "beat", "watcher")
_SHOWN = 5
Check = dict[str, Any]


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """For servers without `readiness`."""
    status, body = readiness()
    return JsonResponse(body, status=status)


def readiness() -> tuple[int, dict[str, Any]]:
    """200 when everything a job needs is there, else 503; the body says what is missing."""
    ok, checks = check_readiness()
    return 200 if ok else 503, {"status": "ok" if ok else "unready", "checks": checks}


def check_readiness() -> tuple[bool, dict[str, Check]]:
    """Whether everything is there, and part by part."""
    checks = {"database": run_check(_database)}
    if checks["database"]["ok"]:
        checks["migrations"] = run_check(_migrations)
    checks["broker"] = run_check(_broker)
    if checks.get("migrations", {}).get("ok"):
        checks |= _heartbeats(clock.now())
        checks[lease_requests.SCHEDULER] = _cycles()
    return all(check["ok"] for check in checks.values()) and len(checks) == len(ROLES) + 4, checks


def run_check(check: Callable[[], str]) -> Check:
    """What a check found wrong; that it cannot be made is wrong too."""
    try:
        problem = check()
    except (DatabaseError, OSError, OperationalError) as e:
        problem = type(e).__name__
    return {"ok": not problem, **({"detail": problem} if problem else {})}


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def _migrations() -> str:
    if migrated.is_complete():
        return ""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(missing)} migrations are not applied: run manage.py migrate" if missing else ""


def _broker() -> str:
    with current_app.connection_for_write(transport_options={"socket_connect_timeout": 2}) as broker:
        broker.ensure_connection(max_retries=1, timeout=2)
    return ""


def _heartbeats(now: datetime) -> dict[str, Check]:
    newest = dict(Heartbeat.objects.filter(role__in=ROLES).values_list("role").annotate(Max("at")))
    checks: dict[str, Check] = {}
    for role in ROLES:
        age = now - newest[role] if role in newest else None
        detail = {"detail": "was never heard of"} if age is None else {"age_s": round(age.total_seconds(), 1)}
        checks[role] = {"ok": age is not None and age <= FRESH, **detail}
    if checks[leases.ROLE]["ok"]:
        checks[leases.ROLE]["detail"] = _ownership(now)
    return checks


def _ownership(now: datetime) -> str:
    """Which watcher owns which members; counts alone where there are many."""
    parts = []
    for watcher, members in leases.owners(now).items():
        shown = ", ".join(members[:_SHOWN]) + (f" and {len(members) - _SHOWN} more" if len(members) > _SHOWN else "")
        parts.append(f"{watcher or 'no watcher'}: {shown or 'no members'}")
    return "; ".join(parts)


def _cycles() -> Check:
    """Whether requested scheduling cycles are completed. A fleet in which nothing is requested is not overdue."""
    progress = lease_requests.progress(lease_requests.SCHEDULER)
    check: Check = {"ok": not progress.overdue}
    if progress.completed_s is not None:
        check["age_s"] = round(progress.completed_s, 1)
    if progress.overdue:
        last = "ever" if progress.completed_s is None else f"for {progress.completed_s:.0f} s"
        check["detail"] = (
            f"no scheduling cycle was completed {last}, although one was requested {progress.unserved_s:.0f} s ago:"
            " see the errors of jobs.schedule in the log of the workers"
        )
    return check
