"""Reads charges and holds, and what counts instead of one that cannot be read: too much rather than too little.

A bad row must not end the cycle of the fleet, and must not be left out either: its job may run, so that its quota and its place
would be given away a second time. The charge or the hold then is what the job asks for in total. If that cannot be read
either, the charge is one job, and the hold takes all pods of its cluster, where nothing is placed until the row is mended.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Case, When
from structlog import get_logger

from fleet import metrics
from fleet.models import Hold
from jobs.core.failover.causes import Cause, lost_nodes
from jobs.core.failover.rules import Past
from jobs.core.failover.symptoms import Symptom
from jobs.core.gang import stored_amounts
from jobs.core.gang.stored_amounts import Amounts, Unreadable
from jobs.core.gang.types import CapacityHold
from jobs.models import Attempt, Job
from quotas.core.accounts.ledger import Charge
from quotas.core.trees.amounts import PODS, of_job

log = get_logger(__name__)

LIVE = ("Pending", "Running", "Unknown")
"""Phases of a pod that holds what it asked for."""
_ALL = 10**12
"""More pods than any cluster has."""
_MOST_UNREAD = 1000
_unread: dict[str, str] = {}
"""Job uid -> what could not be read, since the last `take_unread`."""


def charge_of(job: int, leaf: str, stored: Any, preemptible: bool) -> Charge:
    """The charge of the job with this primary key."""
    try:
        return Charge(leaf, stored_amounts.amounts({} if stored is None else stored), preemptible)
    except Unreadable as e:
        what = f"its charge has {e}"
    uid, total = Job.objects.filter(pk=job).values_list("uid", "total").first() or (job, {})
    _report(uid, what)
    return Charge(leaf, of_job(_readable(total) or {}), preemptible)


def charges_of(rows: Iterable[tuple[int, str, Any, bool]]) -> list[Charge]:
    return [charge_of(*row) for row in rows]


def capacity_hold_of(hold: Hold, cluster: str) -> CapacityHold:
    key = (str(hold.job_uid), hold.attempt)
    try:
        return CapacityHold(key, cluster, stored_amounts.amounts(hold.amounts), stored_amounts.on_nodes(hold.nodes))
    except Unreadable as e:
        _report(hold.job_uid, f"its hold on {cluster} has {e}")
    total = Job.objects.filter(uid=hold.job_uid).values_list("total", flat=True).first()
    return CapacityHold(key, cluster, _readable(total) or {PODS: _ALL}, ())


def take_unread() -> dict[str, str]:
    """What could not be read since the last call, by the uid of its job."""
    unread = dict(_unread)
    _unread.clear()
    return unread


def unreadable() -> dict[str, str]:
    """The uids of all jobs that have such a row now, with what is wrong."""
    faults: dict[str, str] = {}
    charged = Job.objects.filter(charge__isnull=False).order_by().values_list("uid", "charge")
    held = Hold.objects.filter(released_at__isnull=True).order_by().values_list("job_uid", "amounts", "nodes")
    for uid, charge in charged.iterator(chunk_size=5000):
        _check(faults, uid, lambda charge=charge: stored_amounts.amounts(charge))
    for uid, amounts, nodes in held.iterator(chunk_size=5000):
        _check(faults, uid, lambda amounts=amounts: stored_amounts.amounts(amounts))
        _check(faults, uid, lambda nodes=nodes: stored_amounts.on_nodes(nodes))
    return faults


def _check(faults: dict[str, str], uid: UUID, read: Any) -> None:
    try:
        read()
    except Unreadable as e:
        faults[str(uid)] = str(e)


def _readable(total: Any) -> Amounts | None:
    try:
        return stored_amounts.amounts(total)
    except Unreadable:
        return None


def _report(uid: object, what: str) -> None:
    metrics.ISOLATED_FAILURES.labels("scheduler.row").inc()
    log.error("isolated failure", step="scheduler.row", ids=[f"job {uid}"], error=what)
    if len(_unread) < _MOST_UNREAD:
        _unread[str(uid)] = what


def past_attempts(job_ids: Iterable[int]) -> dict[int, list[Past]]:
    """The ended attempts of these jobs, in one query."""
    past: dict[int, list[Past]] = defaultdict(list)
    ended = Attempt.objects.filter(job_id__in=list(job_ids), ended_at__isnull=False)
    # Evidence may be large, and is of use for nodes alone.
    of_nodes = Case(When(cause=Cause.INFRASTRUCTURE, then="evidence"), default=None)
    ended = ended.annotate(of_nodes=of_nodes)
    columns = ("job_id", "cluster_name", "outcome", "ended_at", "cause", "diagnosis__symptom", "diagnosis__node")
    for job_id, cluster, outcome, at, cause, symptom, node, pods in ended.values_list(*columns, "of_nodes"):
        if at:
            is_own = cause == Cause.CODE_ERROR and symptom == Symptom.EXCEPTION
            is_faulty = symptom == Symptom.GPU_FAULT and bool(node)
            past[job_id].append(Past(cluster, outcome, at, cause, is_own or is_faulty, len(lost_nodes(pods))))
    return past
