"""Keeps the state that attempts report (``statePreservation`` of their policy) and gives it to later attempts.

Only reports of the attempt that was sent last count: until the next one is sent, the copy of an attempt that the job has left
may still report its last checkpoint; a copy that returns later changes nothing. A value is kept until another one is reported,
so that it survives the loss of its cluster, and reports that do not have it. No member is contacted.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.core.members.pods import pod_state
from fleet.models import Pod
from jobs.core.policies import state_preservation
from jobs.core.policies.state_preservation import MAX_BYTES, StateRule
from jobs.events import record_event
from jobs.models import Job, PreservedState

Status = Mapping[str, Any]
Values = dict[str, dict[str, Any]]


def begin_attempt(job: Job, attempt: int, rules: Sequence[StateRule]) -> Values:
    """Stores by which rules the reports of the attempt are read, and returns the values that it gets.

    Divided jobs have none: each of their shares would report its own.
    """
    if job.shares or not (rules or job.preserves_state):
        return {}
    return _begin(job, attempt, rules)


@transaction.atomic
def _begin(job: Job, attempt: int, rules: Sequence[StateRule]) -> Values:
    current = Job.objects.filter(pk=job.pk, attempt=attempt)
    if not current.select_for_update(no_key=True).values_list("pk"):
        return {}
    row, _ = PreservedState.objects.get_or_create(job_id=job.pk)
    row.attempt, row.rules = attempt, [rule.as_json() for rule in rules]
    row.save(update_fields=["attempt", "rules"])
    current.update(preserves_state=bool(rules))
    job.preserves_state = bool(rules)
    return {rule.alias: row.values[rule.alias] for rule in rules if rule.alias in row.values}


def keep(cluster_id: int, reports: Iterable[tuple[Job, int, Status]], now: datetime) -> None:
    """Keeps the values in these reports, each of one attempt of a job. The jobs are locked."""
    statuses = {(job.pk, attempt): (job, status) for job, attempt, status in reports if job.preserves_state}
    if not statuses:
        return
    for row in PreservedState.objects.filter(pk__in={pk for pk, _ in statuses}).order_by("pk"):
        job, status = statuses.get((row.pk, row.attempt), (None, {}))
        if job is None or job.finished:
            continue
        rules = state_preservation.of_stored(row.rules)
        reported: dict[str, str | None] = dict(state_preservation.from_status(rules, status))
        if any(rule.pod_annotation for rule in rules):
            reported |= state_preservation.from_annotations(rules, _annotations(cluster_id, job, row.attempt))
        _store(row, job, reported, now)


def shown(job: Job) -> list[dict[str, Any]]:
    """The values that the job's next attempt gets, in the order of the rules, and why others are not kept."""
    row = PreservedState.objects.filter(pk=job.pk).first() if job.preserves_state else None
    if row is None:
        return []
    none = {"value": "", "attempt": 0, "at": None}
    names = [rule.alias for rule in state_preservation.of_stored(row.rules)]
    return [{"name": name, **row.values.get(name, none), "problem": row.problems.get(name, "")} for name in names]


def _annotations(cluster_id: int, job: Job, attempt: int) -> dict[str, str | None]:
    """The kept annotations of the attempt's pods; of several pods with the same one, that of the first role."""
    pods = Pod.objects.filter(cluster_id=cluster_id, job_uid=job.uid, attempt=attempt).exclude(state="")
    rows = list(pods.order_by("namespace", "name").values_list("role", "state"))
    annotations: dict[str, str | None] = {}
    for _, state in sorted(rows, key=lambda row: _position(job, row[0]), reverse=True):
        annotations.update(pod_state.parse(state))
    return annotations


def _position(job: Job, role: str) -> int:
    names = [each["name"] for each in job.roles]
    return names.index(role) if role in names else len(names)


def _store(row: PreservedState, job: Job, reported: Mapping[str, str | None], now: datetime) -> None:
    values: Values = dict(row.values)
    problems = {alias: text for alias, text in row.problems.items() if alias not in reported}
    for alias, value in reported.items():
        others = sum(_bytes(each["value"]) for name, each in values.items() if name != alias)
        if value is None or others + _bytes(value) > MAX_BYTES:
            before = (
                f"the value of attempt {values[alias]['attempt']} is kept" if alias in values else "it has no value"
            )
            problems[alias] = (
                f"{alias} is too long: the preserved state of a job has at most {MAX_BYTES} bytes; {before}"
            )
        elif value != values.get(alias, {}).get("value"):
            values[alias] = {"value": value, "attempt": row.attempt, "at": now.isoformat()}
    for alias in sorted(problems.keys() - row.problems.keys()):
        record_event(job, "StateNotPreserved", problems[alias], now, warning=True)
    if (values, problems) != (row.values, row.problems):
        row.values, row.problems = values, problems
        row.save(update_fields=["values", "problems"])


def _bytes(value: str) -> int:
    return len(value.encode("utf-8", "replace"))
