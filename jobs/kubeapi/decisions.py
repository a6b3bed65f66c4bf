"""What the fleet decided as Kubernetes objects: the binding of each job, and the works that carry it to members.

Both are read only. A change of a job is a change of its binding and its works; a change of a work alone is sent as well.
"""

import uuid
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from django.db.models import Case, CharField, F, Q, QuerySet, Value, When
from django.db.models.functions import Cast, Concat, Lower

from fleet.changes.journal import Action, Entry
from fleet.kube.discovery import Served
from fleet.kube.resources import Resource
from fleet.kube.server.kinds import Object
from fleet.kube.tables import AGE, Column
from fleet.kubeapi.objects.kinds import Change, RowKind, stamp
from fleet.models import Cluster
from jobs.core.division import shares as parts
from jobs.core.life.shares import ShareState
from jobs.events import WORK, work_name
from jobs.kinds import registry
from jobs.models import Binding, Job, Work

BINDINGS = Resource("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding")
WORKS = Resource("work.karmada.io", "v1alpha1", "works", "Work")
_IDENTITY = uuid.UUID("5a2b5b5c-5f5e-4f0e-9f0b-6f7a1f0d9c11")
"""Under which uids are made of what an object belongs to, so that they are known when its row is gone."""


def spelled(job: str = "") -> Concat:
    """The kind as names have it, by columns of a job or, after ``job``, of a row that leads to one."""
    more = [
        When(Q(**{f"{job}api_version__startswith": group, f"{job}kind": kind}), then=Value(suffix))
        for (group, kind), suffix in registry.namesakes().items()
    ]
    return Concat(Lower(f"{job}kind"), Case(*more, default=Value("")))


def former_spelling(entry: Entry) -> str:
    """The same of a job that may be gone."""
    return registry.spelled(entry.group, entry.kind)


_ATTEMPTS = 20
"""Of a job that is gone, works of so many attempts are looked for among what a watch knows."""


class _OfJobs(RowKind):
    """Found by the uid of their job."""

    verbs = ("get", "list", "watch")
    name_field = "shown_name"
    follows = True
    job_field: str

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        kinds = {each.resource.kind for each in registry.everything()}
        last = {each.object_uid: each for each in entries if each.kind in kinds}
        rows: dict[str, list[Any]] = {uid: [] for uid in last}
        for row in self.rows().filter(**{f"{self.job_field}__in": list(last)}) if last else ():
            rows[str(self.job_of(row))].append(row)
        changes = []
        for uid, entry in sorted(last.items(), key=lambda each: each[1].version):
            shown = [self.render(row) for row in rows[uid]]
            changes += [_change(entry, Action.MODIFIED, each["metadata"], each) for each in shown]
            if not shown and entry.action == Action.DELETED:
                changes += [_change(entry, Action.DELETED, names, None) for names in self.former(entry)]
        return changes

    @abstractmethod
    def job_of(self, row: Any) -> object: ...

    @abstractmethod
    def former(self, entry: Entry) -> Iterable[Mapping[str, str]]:
        """The names of what a job that is gone may have had; more than it had does no harm, fewer would."""


def _change(entry: Entry, action: Action, names: Mapping[str, str], shown: Object | None) -> Change:
    return Change(entry.version, action, names["namespace"], names["name"], names["uid"], shown)


class Bindings(_OfJobs):
    """What was decided for each job."""

    served = Served(BINDINGS, ("rb",))
    namespace_field = "job__namespace"
    job_field = "job__uid"
    columns = (
        Column("Scheduled", lambda shown, now: str(bool(_clusters(shown))), description="Whether a cluster was chosen"),
        Column("Cluster", lambda shown, now: ",".join(each["name"] for each in _clusters(shown))),
        AGE,
        Column("Result", lambda shown, now: shown.get("status", {}).get("result", ""), wide=True),
        Column("Attempt", lambda shown, now: shown.get("status", {}).get("schedulerObservedGeneration", ""), wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        name = Concat(F("job__name"), Value("-"), spelled("job__"))
        rows = Binding.objects.select_related("job", "cluster").annotate(shown_name=name)
        return rows.defer("cluster__access", "cluster__apis", "job__manifest", "job__status")

    def job_of(self, row: Binding) -> object:
        return row.job.uid

    def former(self, entry: Entry) -> Iterable[Mapping[str, str]]:
        name = f"{entry.name}-{former_spelling(entry)}"
        return [{"namespace": entry.namespace, "name": name, "uid": _uid("binding", entry.object_uid)}]

    def render(self, row: Any) -> Object:
        job = row.job
        metadata = {
            "name": row.shown_name,
            "namespace": job.namespace,
            "uid": _uid("binding", job.uid),
            "resourceVersion": str(job.resource_version),
            "creationTimestamp": stamp(row.scheduled_at or job.created_at),
        }
        resource = {"apiVersion": job.api_version, "kind": job.kind, "namespace": job.namespace, "name": job.name}
        return {
            "apiVersion": BINDINGS.api_version,
            "kind": BINDINGS.kind,
            "metadata": metadata,
            "spec": {
                "resource": {**resource, "uid": str(job.uid)},
                "clusters": _shares(row),
            },
            "status": {
                "schedulerObservedGeneration": row.attempt,
                "result": row.result,
                "explanation": row.explanation,
                **({"aggregatedStatus": _aggregated(job)} if job.shares else {}),
            },
        }


def _shares(row: Binding) -> list[Object]:
    """Which cluster has how many of the job's pods."""
    if row.job.shares:
        standing = parts.standing(row.job.shares)
        return [{"name": share.cluster, "replicas": share.replicas} for share in standing]
    replicas = sum(role["replicas"] for role in row.job.roles)
    return [{"name": row.cluster.name, "replicas": replicas}] if row.cluster else []


def _aggregated(job: Job) -> list[Object]:
    """How every share stands, in Karmada's words."""
    return [
        {
            "clusterName": share.cluster,
            "applied": share.state is not ShareState.PLACED,
            "health": "Unhealthy" if share.state is ShareState.BACKOFF else "Healthy",
            "status": dict(share.status),
        }
        for share in parts.standing(job.shares)
    ]


class Works(_OfJobs):
    """One member's share of a binding; in the namespace of the job, whose people may read it."""

    served = Served(WORKS)
    job_field = "job_uid"
    columns = (
        Column("Cluster", lambda shown, now: shown.get("spec", {}).get("cluster", "")),
        Column("Applied", lambda shown, now: _applied(shown)),
        AGE,
        Column("State", lambda shown, now: shown.get("status", {}).get("state", ""), wide=True),
        Column("Message", lambda shown, now: shown.get("status", {}).get("message", ""), wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        parts = ("name", Value("-"), spelled(), Value("-"), Cast("attempt", CharField()), Value("-"))
        rows = Work.objects.select_related("cluster").annotate(shown_name=Concat(*parts, "cluster__name"))
        return rows.defer("cluster__access", "cluster__apis")

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        """With its job, or alone."""
        changes = super().changes_in(entries)
        known = {each.uid for each in changes}
        alone = {(each.object_uid, each.name): each for each in entries if each.kind == WORK}
        for row in self.rows().filter(job_uid__in={uid for uid, _ in alone}) if alone else ():
            entry, shown = alone.get((str(row.job_uid), work_name(row))), self.render(row)
            if entry and shown["metadata"]["uid"] not in known:
                changes.append(_change(entry, Action.MODIFIED, shown["metadata"], shown))
        return sorted(changes, key=lambda each: each.version)

    def job_of(self, row: Work) -> object:
        return row.job_uid

    def former(self, entry: Entry) -> Iterable[Mapping[str, str]]:
        clusters = list(Cluster.objects.values_list("pk", "name"))
        for attempt, (pk, cluster) in product(range(1, _ATTEMPTS + 1), clusters):
            name = f"{entry.name}-{former_spelling(entry)}-{attempt}-{cluster}"
            yield {"namespace": entry.namespace, "name": name, "uid": _uid("work", entry.object_uid, attempt, pk)}

    def render(self, row: Any) -> Object:
        applied = row.state in (Work.State.APPLIED, Work.State.SUSPENDED, Work.State.SUSPENDING, Work.State.KEPT)
        condition = {
            "type": "Applied",
            "status": str(applied),
            "reason": row.state,
            "message": row.message,
            "lastTransitionTime": stamp(row.applied_at or row.created_at),
        }
        resource = {"apiVersion": row.api_version, "kind": row.kind, "namespace": row.namespace, "name": row.name}
        return {
            "apiVersion": WORKS.api_version,
            "kind": WORKS.kind,
            "metadata": {
                "name": row.shown_name,
                "namespace": row.namespace,
                "uid": _uid("work", row.job_uid, row.attempt, row.cluster_id),
                "resourceVersion": str(row.resource_version or 1),
                "creationTimestamp": stamp(row.created_at),
            },
            "spec": {
                "cluster": row.cluster.name,
                "attempt": row.attempt,
                "resource": {**resource, "uid": str(row.job_uid)},
            },
            "status": {"state": row.state, "message": row.message, "conditions": [condition]},
        }


def _uid(*parts: object) -> str:
    return str(uuid.uuid5(_IDENTITY, "/".join(str(part) for part in parts)))


def _clusters(shown: Object) -> list[Object]:
    clusters: list[Object] = shown.get("spec", {}).get("clusters") or []
    return clusters


def _applied(shown: Object) -> str:
    return next((str(each["status"]) for each in shown.get("status", {}).get("conditions", [])), "")
