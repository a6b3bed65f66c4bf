"""The timeline events of a copy that was sent: where to, how it differs from the job's manifest, and what it may run beside."""

from collections.abc import Sequence

from fleet.changes import events
from jobs.events import job_event
from jobs.models import Job, Work
from jobs.services.lifecycle.copies import other_copies

UNREPORTED, UNCHECKED = "ProgressNotReported", "NodesNotChecked"
Notes = Sequence[tuple[str, str]]
"""Reasons and messages of events."""


def notes(
    job: Job, work: Work, overridden_by: Sequence[str], preserved_state: str, unreported: str = "", unchecked: str = ""
) -> Notes:
    """``overridden_by`` are the names of the override policies that were applied; ``unreported`` says why it cannot report,
    ``unchecked`` why its nodes are not checked.
    """
    overridden = f"Applied to the copy for {work.cluster.name}: {', '.join(overridden_by)}" if overridden_by else ""
    messages = {
        "ApplyOverridePolicySucceed": overridden,
        "StatePreserved": preserved_state,
        UNREPORTED: unreported,
        UNCHECKED: unchecked,
        other_copies.POSSIBLE: other_copies.warning(job, work.attempt),
    }
    return [(reason, message) for reason, message in messages.items() if message]


def lines(job: Job, work: Work, notes: Notes) -> list[events.Line]:
    sent = ("SyncWorkSucceed", f"Sent to {work.cluster.name} as attempt {work.attempt}")
    warnings = (other_copies.POSSIBLE, UNREPORTED, UNCHECKED)
    return [job_event(job, reason, text, warning=reason in warnings) for reason, text in (sent, *notes)]
