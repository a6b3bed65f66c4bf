"""Which policy claims a job: at its submission, and for jobs without one as policies come and go."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from fleet.db import isolation, prepared
from jobs import snapshot
from jobs.core.policies import propagation as policies
from jobs.events import announce_jobs
from jobs.models import Job, Policy


def claim_unclaimed(now: datetime) -> None:
    """Gives every job without a policy the one that claims it, if there is one now. Locked rows are left to the sweep.

    Placed jobs too: a policy that is deleted and applied anew must not strip them of failover and tolerations.
    """
    if _ANY_UNCLAIMED.values():
        _claim_unclaimed(now)


def _unclaimed() -> QuerySet[Job]:
    live = Job.objects.exclude(state__in=Job.FINISHED).filter(deleting_at__isnull=True)
    return live.filter(policy__isnull=True).order_by("pk")


_ANY_UNCLAIMED = prepared.Rows(lambda _: _unclaimed().order_by().values_list("pk")[:1])


@transaction.atomic
def _claim_unclaimed(now: datetime) -> None:
    known = load_candidates()
    if not known:
        return
    claimed = []
    for job in _unclaimed().defer("manifest", "reason", "status").select_for_update(no_key=True, skip_locked=True):
        [job.policy] = isolation.each("policy_claims", [job], partial(select_policy, known), now, savepoint=False) or [
            None
        ]
        if job.policy is not None:
            claimed.append(job)
    announce_jobs(claimed, now, ["policy"])


def load_candidates() -> list[policies.Candidate]:
    """Every stored policy, as `claimant` compares them."""
    rows = list(Policy.objects.filter(kind__in=policies.KINDS))
    specs = snapshot.specs_of(rows)
    return [policies.Candidate(row, row.namespace, row.name, specs[row.pk]) for row in rows]


def select_policy(candidates: Sequence[policies.Candidate], job: Job) -> Policy | None:
    """The policy that claims the job; None when no policy selects it."""
    identity = {"api_version": job.api_version, "kind": job.kind, "namespace": job.namespace, "name": job.name}
    claiming = policies.match_policy(candidates, labels=job.labels, **identity)
    return claiming.ref if claiming else None
