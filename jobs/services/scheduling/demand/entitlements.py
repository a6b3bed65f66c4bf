"""Which leaf of the quota tree each job belongs to, kept true as the tree changes; and the jobs' veto against a tree that
strands them.

A job's leaf is found when it is submitted and found again when the tree changes, in the transaction of the change. A job
submitted at the same moment is noticed by the version of the tree it was read under, and read again before the next cycle.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from jobs import snapshot
from jobs.core.gang.entitlement import Belonging, find_leaf, is_preemptible, no_leaf
from jobs.models import Job
from jobs.services.lifecycle.accounting import attempt_leaves, flavor_charges
from jobs.services.lifecycle.locks import lock_jobs
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.reclaiming import excess
from quotas.core.reclaiming.excess import Overrun
from quotas.core.trees import amounts
from quotas.core.trees.attributes import OUTSIDE_JOBS
from quotas.core.trees.flavors import GPU, Flavors
from quotas.core.trees.tree import ExcessPolicy, OutsideJobs, Tree
from quotas.models import QuotaTree

Sees = Callable[[str], bool]
"""Whether the author of a change may read a namespace."""
_CHUNK = 500
_COLUMNS = (
    "pk",
    "namespace",
    "name",
    "labels",
    "leaf",
    "leaf_fault",
    "pinned",
    "charge",
    "preemptible",
    "total",
    "state",
)


def fill_entitlements(job: Job, tree: Tree | None, version: int) -> list[str]:
    """Sets the leaf, under this tree, of a job about to be stored; returns warnings. A charged job keeps its leaf."""
    job.tree_version = version
    belonging = find_leaf(tree, job.namespace, job.labels, pinned=job.leaf if job.pinned else "")
    if job.charge is not None and belonging.leaf != job.leaf:
        return [
            f"it keeps its place in {job.leaf} while it runs; {belonging.leaf or 'no queue'} counts when it waits again"
        ]
    if job.charge is None:
        job.leaf, job.leaf_fault = belonging.leaf, belonging.fault[:500]
        job.preemptible = is_preemptible(job.labels)
    return _outside(job, tree)


def _outside(job: Job, tree: Tree | None) -> list[str]:
    """A warning for a job outside the tree that has to wait; a running job runs on."""
    if tree is None or job.leaf or job.state in Job.ON_MEMBER or not (job.leaf_fault or tree.outside_jobs_wait):
        return []
    return [f"it waits (NoQuotaForNamespace): {no_leaf(job.namespace, job.leaf_fault)}"]


FILLED = ("leaf", "leaf_fault", "preemptible", "tree_version")


def has_stale(version: int) -> bool:
    """Whether the leaf of some job was resolved under another tree than the one of this version."""
    return _live().exclude(tree_version=version).exists()


@transaction.atomic
def refit_stale() -> int:
    """Resolves again the leaf of jobs resolved under another tree than the one in force; returns their number."""
    # Locked before they are read: a tree that is edited waits, and no label changes below what is written.
    list(QuotaTree.objects.select_for_update(no_key=True).values_list("pk"))
    tree, version = snapshot.tree_in_force()
    stale = lock_jobs(_live().exclude(tree_version=version))
    # These and no others: a job submitted meanwhile under the former tree stays stale.
    for start in range(0, len(stale), _CHUNK):
        chunk = Job.objects.filter(pk__in=stale[start : start + _CHUNK])
        _refit(list(chunk.order_by("pk").values(*_COLUMNS)), tree)
        chunk.update(tree_version=version)
    return len(stale)


def tree_changing(before: Tree | None, after: Tree | None, sees: Sees) -> str:
    """Gives every live job its leaf in the tree that is to be; a sentence when jobs would be stranded by it.

    Jobs that wait may be left without a leaf only where a tree states what becomes of them: the new one, or when the tree
    goes, the old one. Running jobs may be above a limit or without a leaf only where the node, or the nearest one above that
    is left, states so (``excess``). Called in the transaction of the change, which the sentence ends. It names jobs of
    namespaces that ``sees`` allows.
    """
    jobs = list(_live().values(*_COLUMNS))
    bound = after is None and before is not None and before.outside_jobs_wait
    queued = {job["pk"] for job in jobs if (job["leaf"] or bound) and job["charge"] is None and not _runs(job)}
    leaves = {job["pk"]: job["leaf"] for job in jobs if job["leaf"]}
    recharges = (before.flavors if before else {}) != (after.flavors if after else {})
    _refit(jobs, after, [job["pk"] for job in jobs if (recharges if job["charge"] is not None else _runs(job))])
    holding = [job for job in jobs if job["charge"] is not None or (after and job["leaf"] and _runs(job))]
    if after is None and holding:
        return f"{len(holding)} jobs run by it: let them end or suspend them first"
    lost = [job for job in holding if not job["leaf"] and job["pk"] in leaves]
    if after is not None and (refusal := _leave_without_leaf(lost, leaves, after, sees)):
        return refusal
    stranded = [job for job in jobs if job["pk"] in queued and not job["leaf"]]
    stating = after or before
    if stranded and (stating is None or not _stated(stating, gone=after is None)):
        return f"{len(stranded)} waiting jobs would belong to no leaf: {_names(stranded, sees)}; {_CHOICE}"
    if after is None:
        return ""
    staying = [job for job in holding if job["leaf"]]
    new = {job["pk"] for job in staying if job["charge"] is None}
    asking = [job for job in staying if job["total"].get(GPU) and (recharges or job["pk"] in new)]
    changed = _charge_by_flavor(asking, after.flavors) if recharges or after.flavors else set()
    return _charge_running(staying, new, changed, after)


def _charge_by_flavor(jobs: Sequence[dict[str, Any]], flavors: Flavors) -> set[int]:
    """Sets what these jobs are to be charged of flavors; returns those for which that differs."""
    changed, by_flavor = set(), flavor_charges.by_nodes([job["pk"] for job in jobs], flavors)
    for job in jobs:
        charge = flavor_charges.recharged(_charge(job).amounts, by_flavor.get(job["pk"], {}))
        if charge != job["charge"]:
            job["charge"] = charge
            changed.add(job["pk"])
    return changed


def _charge_running(
    holding: Sequence[Mapping[str, Any]], new: Collection[int], changed: Collection[int], after: Tree
) -> str:
    """Charges running jobs that had no leaf before, and those that count by flavor otherwise than before; a sentence when a
    limit does not allow what is in use.
    """
    ledger = Ledger.from_charges(after, (_charge(job) for job in holding))
    refused = [overrun for overrun in excess.find_overruns(ledger) if overrun.is_refused]
    if refused:
        return f"{'; '.join(_refusal(overrun) for overrun in refused[:_NAMED])}{_more(refused)}"
    for job in holding:
        if job["pk"] in new:
            Job.objects.filter(pk=job["pk"]).update(charge=_charge(job).amounts, charged_at=F("started_at"))
        elif job["pk"] in changed:  # unless it has been released since it was read
            Job.objects.filter(pk=job["pk"], charge__isnull=False).update(charge=job["charge"])
    return ""


def _leave_without_leaf(lost: Sequence[Mapping[str, Any]], leaves: Mapping[int, str], after: Tree, sees: Sees) -> str:
    """Running jobs whose leaf is removed: a sentence when that is refused.

    Those that stay run on outside the tree, uncharged. Those that are evicted keep their charge, by which the next cycle
    finds them (`jobs.services.scheduling.decisions.preemption`).
    """
    policies = {job["pk"]: after.nearest(leaves[job["pk"]]).attributes.excess for job in lost}
    refused = [job for job in lost if policies[job["pk"]] is ExcessPolicy.REFUSE]
    if refused:
        return f"{len(refused)} running jobs would belong to no leaf: {_names(refused, sees)}"
    firm = [job for job in lost if policies[job["pk"]] is ExcessPolicy.TAKE_BACK and not job["preemptible"]]
    if firm:
        return f"{len(firm)} running jobs that may not be preempted would belong to no leaf: {_names(firm, sees)}"
    # A job that is being evicted already keeps its charge until its pods are gone.
    reclaiming = [job["pk"] for job in lost if job["state"] == Job.State.RECLAIMING]
    staying = [pk for pk, policy in policies.items() if policy is ExcessPolicy.WAIT and pk not in reclaiming]
    for start in range(0, len(staying), _CHUNK):
        Job.objects.filter(pk__in=staying[start : start + _CHUNK]).update(charge=None)
    return ""


_CHOICE = (
    f"give their namespaces to a leaf, or state on the root the attribute {OUTSIDE_JOBS}: Wait (jobs outside the tree wait)"
    " or Run (they start without quota); to delete a tree by which jobs wait, it has to say Run"
)


def _stated(tree: Tree, *, gone: bool) -> bool:
    """Whether the tree states what becomes of jobs outside it; without any tree nothing makes them wait."""
    stated = tree.nodes[0].attributes.outside_jobs
    return stated is OutsideJobs.RUN if gone else stated is not None


_NAMED = 3
"""How many of those in the way a refusal names."""


def _names(jobs: Sequence[Mapping[str, Any]], sees: Sees) -> str:
    shown = [f"{job['namespace']}/{job['name']}" for job in jobs if sees(job["namespace"])]
    hidden = len(jobs) - len(shown)
    names = [", ".join(shown[:_NAMED]) + _more(shown), f"{hidden} of other teams" if hidden else ""]
    return ", ".join(filter(None, names))


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""


def _refusal(overrun: Overrun) -> str:
    limit, used = (amounts.format_amount(overrun.resource, amount) for amount in (overrun.limit, overrun.used))
    if overrun.policy is ExcessPolicy.TAKE_BACK:
        return f"{overrun.path} would have {overrun.bound} {limit} while jobs that may not be preempted use {used}"
    return f"{overrun.path} would have {overrun.bound} {limit} while its jobs use {used}"


def _live() -> QuerySet[Job]:
    return Job.objects.exclude(state__in=Job.FINISHED).order_by("pk")


def _runs(job: Mapping[str, object]) -> bool:
    return job["state"] in (*Job.ON_MEMBER, Job.State.MOVING)


def _charge(job: Mapping[str, Any]) -> Charge:
    return Charge(job["leaf"], job["charge"] or amounts.of_job(job["total"]), job["preemptible"])


def _refit(jobs: Sequence[dict[str, Any]], tree: Tree | None, may_be_charged: Sequence[int] = ()) -> None:
    """Writes the leaves that differ, one update for each leaf; ``jobs`` is brought up to date with it."""
    moved: dict[Belonging, list[int]] = defaultdict(list)
    left: dict[str, list[int]] = defaultdict(list)
    for job in jobs:
        pinned = job["leaf"] if job["pinned"] else ""
        belonging = find_leaf(tree, job["namespace"], job["labels"], pinned=pinned)
        if (belonging.leaf, belonging.fault[:500]) != (job["leaf"], job["leaf_fault"]):
            moved[belonging].append(job["pk"])
            left[job["leaf"]].append(job["pk"])
            job["leaf"], job["leaf_fault"] = belonging.leaf, belonging.fault[:500]
    lock_jobs(Job.objects.filter(pk__in=[*may_be_charged, *(pk for pks in moved.values() for pk in pks)]))
    for leaf, pks in left.items():
        for start in range(0, len(pks), _CHUNK):
            attempt_leaves.keep(pks[start : start + _CHUNK], leaf)
    for belonging, pks in moved.items():
        for start in range(0, len(pks), _CHUNK):
            chunk = Job.objects.filter(pk__in=pks[start : start + _CHUNK])
            chunk.update(leaf=belonging.leaf, leaf_fault=belonging.fault[:500])
