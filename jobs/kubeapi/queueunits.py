"""A job's place in a queue as a Kubernetes object: one QueueUnit for each job that belongs to a leaf of the quota tree."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import F, QuerySet, Value
from django.db.models.functions import Concat

from fleet.changes.journal import Action, Entry
from fleet.db import clock
from fleet.errors import NotFound, invalid
from fleet.kube.discovery import Served
from fleet.kube.resources import Resource
from fleet.kube.server.kinds import BY_NAME, Exact, Key, Object, Write
from fleet.kube.tables import AGE, Column
from fleet.kubeapi.objects.kinds import Change, RowKind, stamp
from jobs.kinds import registry
from jobs.kubeapi.decisions import former_spelling, spelled
from jobs.models import Job
from jobs.services.scheduling.demand import estimates, queueing
from jobs.services.submission.changes import queue_moves
from quotas.core.estimate import Estimate
from quotas.core.queues.job_names import namespace_of
from quotas.core.trees.amounts import format_quantity

QUEUE_UNITS = Resource("scheduling.x-k8s.io", "v1alpha1", "queueunits", "QueueUnit")


class QueueUnits(RowKind):
    """Made with its job and gone with it; ``spec.queue`` may be changed with the right to change the job."""

    served = Served(QUEUE_UNITS, ("qu",))
    verbs = ("get", "list", "patch", "update", "watch")
    follows = True
    name_field = "shown_name"
    columns = (
        Column("Phase", lambda shown, now: shown.get("status", {}).get("phase", "")),
        Column("Position", lambda shown, now: str(shown.get("status", {}).get("position", ""))),
        AGE,
        Column("Queue", lambda shown, now: shown.get("spec", {}).get("queue", ""), wide=True),
        Column("Message", lambda shown, now: shown.get("status", {}).get("message", ""), wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        return queueing.units().annotate(shown_name=Concat(F("name"), Value("-"), spelled()))

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        """By whole chunks: places are counted for a page of jobs, not for each."""
        rows = self._inside(self.rows(), namespaces).order_by(*self._order())
        if BY_NAME in exact:
            rows = rows.filter(shown_name=exact[BY_NAME])
        while True:
            page = self._behind(rows, after) if after else list(rows[: self.chunk])
            yield from _shown(page)
            if len(page) < self.chunk:
                return
            after = page[-1].namespace, page[-1].shown_name

    def of_uids(self, uids: Iterable[str]) -> dict[str, Object]:
        return {each["metadata"]["uid"]: each for each in _shown(self.rows().filter(uid__in=list(uids)))}

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        """A change of a job is a change of its unit; units of other jobs are sent when those jobs change.

        A job that has no unit may have had one when its reader listed them, unless the job itself is newer than that.
        """
        kinds = {each.resource.kind for each in registry.everything()}
        last = {each.object_uid: each for each in entries if each.kind in kinds}
        there = self.of_uids(last) if last else {}
        fresh = {each.object_uid for each in entries if each.action == Action.ADDED}
        changes = []
        for uid, entry in sorted(last.items(), key=lambda each: each[1].version):
            action = Action.MODIFIED if uid in there else Action.DELETED
            name = f"{entry.name}-{former_spelling(entry)}"
            guessed = uid not in there and uid in fresh and entry.action != Action.DELETED
            changes.append(Change(entry.version, action, entry.namespace, name, uid, there.get(uid), guessed))
        return changes

    def render(self, row: Job) -> Object:
        return next(_shown([row]))

    def update(self, document: Object, write: Write) -> None:
        spec, name = document.get("spec"), document["metadata"]["name"]
        queue = spec.get("queue") if isinstance(spec, dict) else None
        if not isinstance(queue, str) or not queue:
            raise invalid("spec.queue", f"must be the name of a queue, or the path of its leaf, not {queue!r}")
        job = self.rows().filter(namespace=write.namespace, shown_name=name).first()
        if job is None:
            raise NotFound(f"QueueUnit {name} is gone")
        if queue != job.leaf:
            queue_moves.move(job, queue, by=write.by, now=write.now)


def _shown(rows: Iterable[Job]) -> Iterator[Object]:
    starts = estimates.estimated_starts(clock.now())
    for unit in queueing.describe(rows):
        yield _rendered(unit, estimates.estimate_of(unit.job, starts) if unit.position else None)


def _rendered(unit: queueing.QueueUnit, estimate: Estimate | None) -> Object:
    job: Any = unit.job
    metadata = {
        "name": job.shown_name,
        "namespace": job.namespace,
        "uid": str(job.uid),
        "resourceVersion": str(job.resource_version),
        "creationTimestamp": stamp(job.created_at),
    }
    others = {"ahead": unit.ahead, "blocker": unit.blocker}
    consumer = {"apiVersion": job.api_version, "kind": job.kind, "namespace": job.namespace, "name": job.name}
    status = {
        "phase": unit.phase.value,
        "position": unit.position,
        **{field: name for field, name in others.items() if namespace_of(name) == job.namespace},
        "attempts": unit.attempts,
        "message": unit.message,
        "estimatedStart": stamp(estimate.starts_at) if estimate else "",
        "estimateBasis": estimate.message if estimate else "",
    }
    return {
        "apiVersion": QUEUE_UNITS.api_version,
        "kind": QUEUE_UNITS.kind,
        "metadata": metadata,
        "spec": {
            "consumerRef": consumer,
            "queue": unit.queue,
            "priority": job.priority,
            "request": {name: format_quantity(name, amount) for name, amount in job.total.items()},
        },
        "status": {key: value for key, value in status.items() if value not in ("", None)},
    }
