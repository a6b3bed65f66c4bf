"""Orders that changed labels and annotations of a job reach its copies, while they run.

The order travels with that of a size (`sizes.order`): a counter that a work catches up with. What was taken out of the manifest
is noted at the work, because a copy has labels and annotations of others, and only what came from the manifest may be removed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import F

from fleet.changes import events
from jobs.core.division import shares
from jobs.models import Job, Work

FIELDS = ("labels", "annotations")


def order(job: Job, before: Mapping[str, Any], now: datetime) -> None:
    """Orders it where the metadata of the locked job's manifest differs from that of ``before``."""
    after = _metadata(job.manifest)
    if job.attempt == 0 or _metadata(before) == after:
        return
    removed = {field: sorted(_metadata(before)[field].keys() - after[field].keys()) for field in FIELDS}
    attempts = shares.counting(job.shares, job.attempt)
    sent = Work.objects.filter(
        job_uid=job.uid, attempt__in=attempts, state__in=[Work.State.SENDING, Work.State.APPLIED]
    )
    for work in sent.only("pk", "stale_metadata"):
        stale = {field: sorted({*(work.stale_metadata or {}).get(field, ()), *removed[field]}) for field in FIELDS}
        Work.objects.filter(pk=work.pk).update(
            stale_metadata=stale if any(stale.values()) else None,
            resize_wanted=F("resize_wanted") + 1,
            due_at=now,
            tries=0,
        )
        events.enqueue("jobs.push", work.pk)


def _metadata(manifest: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {field: dict(manifest["metadata"].get(field) or {}) for field in FIELDS}


def write(
    existing: dict[str, Any], wanted: Mapping[str, Any], stale: Mapping[str, Any] | None, kept: frozenset[str]
) -> None:
    """Gives a copy the labels and annotations of the manifest ``wanted``, and takes out those that are ``stale``.

    Keys in ``kept`` are the fleet's own and stay as they are.
    """
    for field, values in _metadata(wanted).items():
        current = existing["metadata"].get(field) or {}
        gone = {*(stale or {}).get(field, ())} - values.keys() - kept
        changed = {key: value for key, value in current.items() if key not in gone}
        changed |= {key: value for key, value in values.items() if key not in kept}
        if changed != current:
            existing["metadata"][field] = changed
