"""Gives a copy that is sent the state that earlier attempts of its job reported, and keeps that of a copy that is stopped."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from jobs.core.policies.state_preservation import StateRule
from jobs.kinds import preserved_state
from jobs.kinds.base import Kind, Manifest
from jobs.models import Job, Work
from jobs.services.lifecycle.copies import state_preservation
from jobs.services.lifecycle.locks import lock_jobs


def write(kind: Kind, body: Manifest, job: Job, work: Work, rules: Sequence[StateRule]) -> str:
    """Writes the state into ``body``, in place. Returns what it is, in words; empty if there is none."""
    state = state_preservation.begin_attempt(job, work.attempt, rules)
    preserved_state.write(
        kind, body, () if job.shares else rules, {alias: each["value"] for alias, each in state.items()}
    )
    values = ", ".join(f"{alias} of attempt {each['attempt']}" for alias, each in state.items())
    return f"The copy for {work.cluster.name} has the preserved state: {values}" if values else ""


@transaction.atomic
def keep_last(job: Job, work: Work, copy: Manifest, now: datetime) -> None:
    """Keeps the state of a copy right before it is stopped, because its last report may come after its removal."""
    if job.preserves_state and lock_jobs(Job.objects.filter(pk=job.pk)):
        state_preservation.keep(work.cluster_id, [(job, work.attempt, copy.get("status") or {})], now)
