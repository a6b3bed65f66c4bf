"""The rows that documents of a submission may change, by their names; it knows nothing of what the documents say."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db.models import Model

from fleet.db.prepared import TEXT, Param, Rows
from fleet.errors import Forbidden
from fleet.services.authorization import namespaces
from jobs.models import Dependent, Job, Policy

Key = tuple[str, str, str]
"""(name, namespace, kind)."""
_FIELDS = ("name", "namespace", "kind")
_AT_ONCE = 500


def _same(param: Param) -> dict[str, Any]:
    return {f"{name}__in": param(name, TEXT) for name in _FIELDS}


def _locked(model: type[Model]) -> Rows[Model]:
    rows = model._default_manager.order_by("pk").select_for_update(no_key=True)
    return Rows(lambda param: rows.filter(**_same(param)).values_list("pk"))


_LOCKED: dict[type[Model], Rows[Model]] = {model: _locked(model) for model in (Dependent, Policy, Job)}
_JOBS = Rows(
    lambda param: Job.objects.filter(**_same(param)).order_by().values_list("kind", "namespace", "name", "group")
)
_WHOLE_JOBS = Rows(lambda param: Job.objects.order_by("pk").select_for_update(no_key=True).filter(**_same(param)))


def lock(model: type[Model], keys: Iterable[Key]) -> None:
    """Locks the rows with these keys, and few others."""
    for values in _batches(keys):
        _LOCKED[model].values(**values)


def jobs(keys: Iterable[Key]) -> dict[tuple[str, str, str, str], Job]:
    """By (kind, namespace, name, group): the jobs with these keys, and few others, locked: some may be new since `lock`."""
    found = (job for values in _batches(keys) for job in _WHOLE_JOBS.objects(**values))
    return {(job.kind, job.namespace, job.name, job.group): job for job in found}


def find_jobs(keys: Iterable[Key]) -> set[tuple[str, str, str, str]]:
    """(kind, namespace, name, group) of the jobs with these keys, and of few others."""
    return {row for values in _batches(keys) for row in _JOBS.values(**values)}


def _batches(keys: Iterable[Key]) -> Iterator[dict[str, list[str]]]:
    in_order = sorted(set(keys))
    for start in range(0, len(in_order), _AT_ONCE):
        columns = zip(*in_order[start : start + _AT_ONCE], strict=True)
        yield dict(zip(_FIELDS, map(list, map(set, columns)), strict=True))


def refuse_terminating(spaces: Collection[str], now: datetime) -> None:
    """Nothing is created in a namespace that is being deleted while the last jobs of it are leaving their clusters."""
    for name in namespaces.terminating(spaces):
        left = Job.objects.filter(namespace=name).count()
        if left:
            jobs = "1 job is" if left == 1 else f"{left} jobs are"
            raise Forbidden(
                f"unable to create new content in namespace {name} because it is being terminated: {jobs} still being"
                " removed; apply it again when the namespace is gone"
            )
        namespaces.remove(name, now=now)
