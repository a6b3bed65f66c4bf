"""Which budgets of the quota tree are used up: counted from attempts, and written to the queues that it concerns.

What is used is a sum over rows that are written anyway, those of deleted jobs included, so no crash can make it wrong. Whether
a budget is spent is written to its queue: from there scheduler, doors and what-if read it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce, NullIf

from fleet.db import prepared
from fleet.services.operations import clock_steps
from jobs import snapshot
from jobs.models import Attempt, DeletedUse
from jobs.services.lifecycle import cycle_requests
from quotas.core.accounts import budget_accounts
from quotas.core.accounts.budget_accounts import Account, Span
from quotas.core.trees.tree import Tree
from quotas.models import Queue
from quotas.services import queues

_PAUSE = timedelta(seconds=10)
_SPANS_PER_S = 2000
"""A pause of a second for so many spans that were added up: of a year of attempts the sum takes seconds."""
_COLUMNS = ("of", "own", "placed_at", "ended_at", "sizes")
_CHUNK = 5000
_last: list[tuple[int, datetime, timedelta]] = []
"""Of the last review of this process: the version of the tree, when it was, and how long it holds."""


def accounts(tree: Tree, now: datetime) -> list[Account]:
    """The budgets of the tree and what is used of them, as of now."""
    return budget_accounts.accounts(tree, _spans(tree, now), now)


def review(now: datetime) -> int:
    """Brings the queues up to date whose budget is spent, or is not any more; returns how many changed.

    Shortly after a step of the clock forward the former time counts: a budget that is spent may stop jobs.
    """
    tree, version = snapshot.tree_in_force()
    stated = {node.path for node in tree.nodes if node.attributes.time.budget is not None} if tree else set()
    if not stated and not _ANY_SPENT.values():
        return 0
    if _last and _last[-1][0] == version and timedelta() <= now - _last[-1][1] < _last[-1][2]:
        return 0
    until = clock_steps.elapsed(now).deadlines_until
    spans = list(_spans(tree, until)) if tree else []
    counted = {each.path: each for each in (budget_accounts.accounts(tree, spans, until) if tree else ())}
    changed = sum(_write(queue, counted.get(queue.path), now) for queue in _concerned(stated))
    _last[:] = [(version, now, max(_PAUSE, timedelta(seconds=len(spans) / _SPANS_PER_S)))]
    if changed:
        cycle_requests.request()
    return changed


def exist() -> bool:
    """Whether a budget may be spent or renewed by the clock alone."""
    tree, _ = snapshot.tree_in_force()
    return any(node.attributes.time.budget is not None for node in (tree.nodes if tree else ()))


_ANY_SPENT = prepared.Rows(lambda _: Queue.objects.filter(spent__isnull=False).order_by().values_list("pk")[:1])


def _concerned(paths: set[str]) -> list[Queue]:
    return list(Queue.objects.filter(Q(path__in=paths) | Q(spent__isnull=False)).order_by("path"))


def _write(queue: Queue, account: Account | None, now: datetime) -> bool:
    """Whether it is another one now. The numbers are those of the moment when it was spent."""
    before = queue.spent
    if account is None or not account.is_spent:
        if before is not None:
            queues.set_spent(queue, None, message=f"the budget of {queue.path} is not spent", now=now)
        return before is not None
    budget = account.budget
    key = {"when": budget.when_spent.value, "until": account.end.isoformat(), "hours": budget.gpu_hours}
    if before is not None and all(before.get(name) == value for name, value in key.items()):
        return False
    spent = {**key, "used": round(account.used_hours, 4), "per": budget.per.value, "message": account.message}
    queues.set_spent(queue, spent, message=f"{account.message}; when-spent: {budget.when_spent}", now=now)
    return True


def _spans(tree: Tree, now: datetime) -> Iterator[Span]:
    begin = budget_accounts.begin_of_longest(tree, now)
    if begin is None:
        return
    leaf = Coalesce(NullIf("leaf", Value("")), "job__leaf")
    touching = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gt=begin), job__gpus__gt=0, placed_at__lte=now)
    rows = touching.annotate(of=leaf, own=Coalesce("gpus", "job__gpus")).order_by()
    deleted = DeletedUse.objects.filter(ended_at__gt=begin).annotate(of=F("leaf"), own=F("gpus")).order_by()
    for source in (rows, deleted):
        for path, gpus, placed_at, ended_at, sizes in source.values_list(*_COLUMNS).iterator(_CHUNK):
            since = _ms(placed_at)
            for until, before in sizes or ():
                yield Span(path, before, since, until)
                since = until
            yield Span(path, gpus, since, ended_at and _ms(ended_at))


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
