"""Gangs the scheduler does not consider at all: without a policy or a quota leaf, in a closed queue, or before their turn."""

from collections.abc import Mapping
from typing import Any

from jobs.core.admission.snapshot import Quota
from jobs.core.gang.entitlement import no_leaf
from jobs.core.gang.types import Gang
from jobs.core.reasons import AWAITS_JOBS, Code, QuotaVerdict, Reason, Verdict

INADMISSIBLE = frozenset(
    {
        Code.NO_POLICY,
        Code.NO_QUOTA_FOR_NAMESPACE,
        Code.QUEUE_HELD,
        Code.BUDGET_SPENT,
        Code.SCHEDULING_SUSPENDED,
        Code.NEVER_FITS,
        Code.PLAN_REJECTED,
        *AWAITS_JOBS,
    }
)
"""Reasons that free capacity alone does not end: a policy, a quota, a queue or the job has to be changed."""


def find_inadmissible_reason(gang: Gang, quota: Quota | None) -> Reason | None:
    """Why the gang is not considered; None when it is."""
    if gang.policy is None:
        return Reason(
            Code.NO_POLICY,
            f"no PropagationPolicy of its namespace and no ClusterPropagationPolicy selects this {gang.kind}",
        )
    if gang.awaits is not None:
        code, message = gang.awaits
        return Reason(Code(code), message)
    if gang.charged and not gang.queued:
        return None
    if quota is None:
        return _suspended_reason() if gang.policy.suspended else None
    if not gang.leaf and (gang.leaf_fault or gang.policy.suspended or quota.ledger.tree.outside_jobs_wait):
        return _no_quota(gang, runs_if_stated=not gang.policy.suspended)
    if closed := quota.closed.get(gang.leaf):
        if closed.spent is not None:
            return budget_spent(closed.path, closed.spent)
        message = f"queue {closed.path} ({closed.name}) is {closed.state.lower()} and lets no job start"
        facts = {"queue": closed.name, "state": closed.state}
        return Reason(Code.QUEUE_HELD, message, (), QuotaVerdict(Code.QUEUE_HELD, closed.path, message, facts))
    return None


def budget_spent(path: str, spent: Mapping[str, Any], clusters: tuple[Verdict, ...] = ()) -> Reason:
    """The reason of a gang that does not start because the budget of the node is used up."""
    facts = {name: spent[key] for name, key in (("used_gpu_hours", "used"), ("gpu_hours", "hours"), ("until", "until"))}
    message = str(spent["message"])
    return Reason(
        Code.BUDGET_SPENT,
        message,
        clusters,
        QuotaVerdict(Code.BUDGET_SPENT, path, message, facts | {"per": spent["per"]}),
    )


def _suspended_reason() -> Reason:
    message = "its policy sets suspension.scheduling: true and there is no quota tree whose queue could release it"
    return Reason(Code.SCHEDULING_SUSPENDED, message)


def _no_quota(gang: Gang, *, runs_if_stated: bool) -> Reason:
    message = no_leaf(gang.name.partition("/")[0], gang.leaf_fault, runs_if_stated=runs_if_stated)
    return Reason(Code.NO_QUOTA_FOR_NAMESPACE, message, (), QuotaVerdict(Code.NO_QUOTA_FOR_NAMESPACE, "", message))
