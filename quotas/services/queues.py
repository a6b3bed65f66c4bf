"""A queue is held, drained, stopped and opened again. Which of its jobs that concerns is for those who have jobs to know."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from fleet.changes import events
from fleet.errors import Conflict
from fleet.services.auditing import audit
from quotas import signals
from quotas.models import Queue
from quotas.services import scopes
from quotas.services.trees import change

State = Queue.State
_DID = {State.OPEN: "opened", State.HELD: "held", State.DRAINING: "drained", State.STOPPED: "stopped"}
_MEANS = {
    State.OPEN: "it admits jobs",
    State.HELD: "it admits nothing, what runs goes on",
    State.DRAINING: "it admits nothing and takes no more jobs, what runs goes on",
    State.STOPPED: "it admits nothing, and what runs is taken back",
}


def set_spent(queue: Queue, spent: dict[str, Any] | None, *, message: str, now: datetime) -> None:
    """Records that the budget of its node is used up, or that it is not any more (None)."""
    with transaction.atomic():
        row = Queue.objects.select_for_update(no_key=True).filter(pk=queue.pk).first()
        if row is None or row.spent == spent:
            return
        [version] = events.announce([change(row)], now)
        Queue.objects.filter(pk=row.pk).update(spent=spent, resource_version=version)
        events.record(change(row), "BudgetRenewed" if spent is None else "BudgetSpent", message, now)


def set_state(queue: Queue, state: State, *, by: str, now: datetime, comment: str = "") -> bool:
    """False when it was so already. The queue given is brought up to date."""
    scopes.require_queue(by, queue.path)
    if queue.state == state:
        return False
    audit.remember_row(queue)
    with transaction.atomic():
        values = {"state": state, "state_by": by, "state_at": now, "state_comment": comment[:500]}
        if Queue.objects.filter(pk=queue.pk, state=queue.state).update(**values) != 1:
            raise Conflict(f"Queue {queue.name} was changed at the same moment: look again.")
        [version] = events.announce([change(queue)], now)
        Queue.objects.filter(pk=queue.pk).update(resource_version=version)
        why = f": {comment}" if comment else ""
        events.record(change(queue), f"Queue{state.label}", f"{by} {_DID[state]} the queue, {_MEANS[state]}{why}", now)
        transaction.on_commit(partial(signals.queue_changed.send, Queue, queue=queue.pk, state=state), robust=True)
    for name, value in {**values, "resource_version": version}.items():
        setattr(queue, name, value)
    return True
