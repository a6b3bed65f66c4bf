"""The kinds of demand as this door serves them: each reads rows, renders them, and names the service of its delete."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from django.db.models import QuerySet

from fleet.db import prepared
from fleet.errors import invalid
from fleet.kube import crds
from fleet.kube.discovery import Served
from fleet.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SIGS_POD_GROUPS,
    TRAINING_RUNTIMES,
    VOLUME_CLAIMS,
    Resource,
)
from fleet.kube.schema import structural
from fleet.kube.server.kinds import Exact, Key, Object, Write
from fleet.kube.tables import AGE, Column
from fleet.kubeapi.objects.kinds import Kind, head, stamp
from fleet.kubeapi.objects.namespaces import Contents
from jobs.core.division.shares import standing
from jobs.core.policies import propagation as policies
from jobs.kinds import registry, schemas
from jobs.kinds.base import Kind as JobKind
from jobs.kinds.base import Phase
from jobs.kubeapi import printing
from jobs.kubeapi.decisions import Bindings, Works
from jobs.kubeapi.queueunits import QueueUnits
from jobs.kubeapi.writes import ManifestKind, rendered
from jobs.models import Dependent, Job, Policy, Progress
from jobs.services.lifecycle import sizes, volume_claims
from jobs.services.submission.changes import actions
from quotas.core.queues.job_names import facts_within

CONTENTS = (
    Contents(Job.objects.all(), actions.delete, leaves_later=True),
    Contents(Policy.objects.all(), actions.delete_policy),
    Contents(Dependent.objects.all(), actions.delete_dependent),
)
"""What can be in a namespace, and goes with it; jobs first, which refer to the others."""


class Jobs(ManifestKind):
    """One kind of training job. Its status is the member's; while it has none, the fleet says why."""

    wide = (
        Column("Cluster", lambda shown, now: printing.clusters(_convoy(shown)), wide=True),
        Column("Fleet State", lambda shown, now: _convoy(shown).get("state", ""), wide=True),
        Column("Reason", lambda shown, now: (_convoy(shown).get("reason") or {}).get("message", ""), wide=True),
        Column("Size", lambda shown, now: printing.size(_convoy(shown)), wide=True),
        Column("Progress", lambda shown, now: printing.progress(_convoy(shown)), wide=True),
    )

    def __init__(self, served: Served) -> None:
        self.served = served
        self.job_kind = registry.kind_of(served.resource.api_version, served.resource.kind)
        self.columns = (*printing.columns(served.resource, state), *self.wide)

    def rows(self) -> QuerySet[Any]:
        """Of every version: a name is one job, whichever version it was submitted in, as in one cluster."""
        group = registry.group_of(self.served.resource.api_version)
        rows = Job.objects.filter(kind=self.name, group=group).select_related("cluster", "progress")
        return rows.only(*_COLUMNS, *_PROGRESS)

    def render(self, row: Job) -> Object:
        deleting = stamp(row.deleting_at) if row.deleting_at else None
        # The spec is what was asked for, as Kubernetes has it; the status says what is in force.
        row.manifest = sizes.manifest_asked_for(row)
        shown = rendered(row, self.served.resource.api_version, deletionTimestamp=deleting)
        if row.api_version != self.served.resource.api_version:
            shown = structural.pruned(self.kept, shown)
        elif self.defaults:
            shown = structural.with_defaults(self.defaults, shown)
        shown = self.job_kind.filled_in(shown, str(row.uid))
        progress = getattr(row, "progress", None)
        return {**shown, "status": _status(row, row.cluster.name if row.cluster else None, _progress(progress))}

    def written(self, stored: Object) -> Object:
        return self.job_kind.without_filled_in(super().written(stored))

    def update(self, document: Object, write: Write) -> None:
        """Of a job of another version the metadata alone can be changed here: its fields are not those of this version."""
        name = document["metadata"]["name"]
        job = self.one(name, write)
        if job.api_version != self.served.resource.api_version:
            spec = {"spec": sizes.manifest_asked_for(job).get("spec")}
            if structural.pruned(self.kept, spec)["spec"] != document.get("spec"):
                resource = self.served.resource
                named = f"{resource.plural}.{job.api_version.rpartition('/')[2]}.{resource.group} {name}"
                remedy = f"change it with kubectl edit {named}, or delete it first"
                raise invalid("apiVersion", f"{self.name} {name} was submitted as {job.api_version}: {remedy}")
            document = {**document, "apiVersion": job.api_version, **spec}
            self._apply(document, write)
            return
        super().update(document, write)

    def lines(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        """Without the manifest: it is most of a row, and what takes longest to read."""
        sizes_shown = _SIZES.get(self.served.resource.group, {})
        rows = self.rows().values_list(*_LINE, *sizes_shown.values(), named=True)
        return self._walk(rows, partial(_line, sizes_shown), namespaces, after, exact, prepared.named)

    def remove(self, current: Object, options: Object, write: Write) -> Object:
        """A user who asks that the pods go on would lose them: refused."""
        if options.get("propagationPolicy") == "Orphan" or options.get("orphanDependents"):
            remedy = "delete it without --cascade=orphan, which ends its copies with their pods"
            raise invalid("propagationPolicy", f"Orphan: the pods of a fleet job do not outlive it: {remedy}")
        return super().remove(current, options, write)

    def delete(self, name: str, write: Write) -> bool:
        job = self.one(name, write)
        return job.deleting_at is None and actions.delete(job, by=write.by, now=write.now)


_ORDER = ("Complete", "Completed", "Succeeded", "Failed", "Suspended", "Restarting", "Running", "Created")
_STATED_BY = {
    Phase.RUNNING: {"Running", "Restarting"},
    Phase.RESTARTING: {"Restarting"},
    Phase.SUSPENDED: {"Suspended"},
    Phase.SUCCEEDED: {"Succeeded", "Complete", "Completed"},
    Phase.FAILED: {"Failed"},
}
"""Conditions of a member that state the phase; without one of them, the fleet adds its own."""
_PROGRESS = ("progress__step", "progress__total", "progress__percent")
_COLUMNS = (
    *(field.name for field in Job._meta.concrete_fields if field.name not in ("roles", "total")),
    "cluster__name",
)
"""Those of a job that are rendered or written, and of its cluster the name alone: more are most of what a read costs."""
_LINE = (
    *("name", "namespace", "uid", "resource_version", "generation", "labels", "deleting_at", "cluster__name"),
    *("status", "state", "reason", "attempt", "created_at", "finished_at", "api_version", "kind", "suspended"),
    *("size", "resize", "shares", *_PROGRESS),
)
_SIZES: Mapping[str, Mapping[str, str]] = {
    "batch": {"completions": "manifest__spec__completions", "parallelism": "manifest__spec__parallelism"}
}
"""Fields of the spec that the columns of a group's kinds show, and where they stand."""


def _line(sizes_shown: Mapping[str, str], row: Any) -> Object:
    deleting = stamp(row.deleting_at) if row.deleting_at else None
    metadata = head(row, creationTimestamp=stamp(row.created_at), labels=row.labels, deletionTimestamp=deleting)
    spec = {"suspend": row.suspended, **{name: getattr(row, at) for name, at in sizes_shown.items()}}
    return {"metadata": metadata, "spec": spec, "status": _status(row, row.cluster__name, _progress(_reported(row)))}


def _reported(row: Any) -> Progress | None:
    """Most jobs report nothing."""
    if row.progress__step is None and row.progress__percent is None:
        return None
    return Progress(step=row.progress__step, total=row.progress__total, percent=row.progress__percent)


def _progress(row: Progress | None) -> Object:
    """What its training reports. A watch shows the value of the job's last change: reports are no changes of the object."""
    stated = {} if row is None else {"step": row.step, "total": row.total, "percent": row.percent_done}
    return {name: value for name, value in stated.items() if value is not None}


def _status(row: Any, cluster: str | None, progress: Object) -> Object:
    """``row`` is a job, or of its columns those of a line."""
    phase, kind = printing.phase_of(row.state), registry.kind_of(row.api_version, row.kind)
    status = printing.with_phase(kind, {} if row.state in Job.OFF_MEMBER else row.status, phase)
    stated = status.get("conditions")
    conditions = [each for each in stated if isinstance(each, dict)] if stated else []
    convoy = {
        "state": row.state,
        "cluster": cluster,
        "clusters": sorted({share.cluster for share in standing(row.shares)}) if row.shares else [],
        "attempt": row.attempt,
        "reason": _reason_within(row.reason, row.namespace),
        "size": row.size,
        "resize": _resize_within(row) if row.resize else None,
        "progress": progress,
    }
    return {
        **status,
        "conditions": [*conditions, *_added_conditions(row, cluster, kind, phase, conditions)],
        "convoy": {key: value for key, value in convoy.items() if value},
    }


def _added_conditions(
    row: Any, cluster: str | None, kind: JobKind, phase: Phase, conditions: list[Object]
) -> list[Object]:
    """What the fleet knows of the phase and the member has not stated, by the conditions that the kind has upstream."""
    added = []
    if not conditions and Phase.CREATED in kind.phase_conditions:
        added.append(_condition("Created", "the fleet has the job", stamp(row.created_at)))
    true_types = {each.get("type") for each in conditions if each.get("status") == "True"}
    name = kind.phase_conditions.get(phase)
    if name is None or phase not in _STATED_BY or true_types & _STATED_BY[phase]:
        return added
    if phase in (Phase.RUNNING, Phase.RESTARTING):
        return [*added, _condition(name, f"attempt {row.attempt} on {cluster}", stamp(row.created_at))]
    reason = row.reason or {}
    final = _condition(name, reason.get("message", ""), stamp(row.finished_at or row.created_at))
    return [*added, {**final, "reason": reason.get("cause") or final["reason"]}]


def _reason_within(reason: Object | None, namespace: str) -> Object | None:
    """One rendering serves all watches, so it has what every reader of the namespace may see."""
    if not reason or not reason.get("quota"):
        return reason
    return {**reason, "quota": facts_within(reason["quota"], namespace)}


def _resize_within(row: Any) -> Object | None:
    """The growth that waits, with its reason as every reader of the namespace may see it."""
    resize = sizes.shown(row)
    if not resize:
        return None
    return {**resize, **({"reason": _reason_within(resize["reason"], row.namespace)} if "reason" in resize else {})}


def _condition(kind: str, message: str, since: str) -> Object:
    return {"type": kind, "status": "True", "reason": f"Convoy{kind}", "message": message, "lastTransitionTime": since}


def state(shown: Object) -> str:
    """The column STATE: of the conditions that are true, the one that says most; without one, the phase of the job."""
    status = shown.get("status", {})
    conditions = status.get("conditions") or ()
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    phase = printing.phase_of(status["convoy"]["state"]).value if "convoy" in status else ""
    return next((each for each in _ORDER if each in true), phase) if true else phase


def _convoy(shown: Object) -> Object:
    """Five columns ask for it; only what a watch says of a deleted object may be without."""
    try:
        convoy: Object = shown["status"]["convoy"]
    except KeyError:
        return {}
    return convoy


class Policies(ManifestKind):
    """The same rows under every group they are known by."""

    columns = (
        AGE,
        Column("Scheduling", lambda shown, now: _suspension(shown), wide=True),
    )

    def __init__(self, served: Served) -> None:
        self.served = served

    def rows(self) -> QuerySet[Any]:
        return Policy.objects.filter(kind=self.name)

    def render(self, row: Policy) -> Object:
        return rendered(row, self.served.resource.api_version)

    def delete(self, name: str, write: Write) -> bool:
        actions.delete_policy(self.one(name, write), by=write.by, now=write.now)
        return True


def _suspension(shown: Object) -> str:
    return "Suspended" if (shown.get("spec", {}).get("suspension") or {}).get("scheduling") else "Active"


class Dependents(ManifestKind):
    """Reading their contents takes the right to write them: a ConfigMap may hold a secret as well."""

    read_verb = "apply"

    def __init__(self, served: Served) -> None:
        self.served = served

    def rows(self) -> QuerySet[Any]:
        return Dependent.objects.filter(kind=self.name)

    def render(self, row: Dependent) -> Object:
        return rendered(row, self.served.resource.api_version)

    def delete(self, name: str, write: Write) -> bool:
        actions.delete_dependent(self.one(name, write), by=write.by, now=write.now)
        return True


class VolumeClaims(Dependents):
    """Their phase is what GitOps controllers wait for: ``Bound`` once a cluster has the claim."""

    columns = (Column("Status", lambda shown, now: shown["status"]["phase"]), AGE)

    def rows(self) -> QuerySet[Any]:
        return volume_claims.with_locations(super().rows())

    def render(self, row: Dependent) -> Object:
        return {**super().render(row), "status": {"phase": volume_claims.phase(row)}}


class Runtimes(Dependents):
    """Training runtimes, PodGroups, PriorityClasses and claims of devices hold no secrets: readers of a namespace read them."""

    read_verb = ManifestKind.read_verb


def kinds() -> list[Kind]:
    """Everything of demand, as it is served."""
    dependents = {CONFIG_MAPS: "cm", SECRETS: "", SERVICE_ACCOUNTS: "sa"}
    return [
        VolumeClaims(Served(VOLUME_CLAIMS, ("pvc",))),
        *(Dependents(Served(resource, (short,) if short else ())) for resource, short in dependents.items()),
        *(Jobs(_served(kind)) for kind in registry.everything()),
        *(
            Runtimes(Served(each, document=crds.document(each)))
            for each in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
        ),
        Runtimes(Served(PRIORITY_CLASSES, ("pc",))),
        Runtimes(Served(RESOURCE_CLAIMS)),
        Runtimes(Served(RESOURCE_CLAIM_TEMPLATES)),
        Runtimes(Served(SIGS_POD_GROUPS, document=crds.document(SIGS_POD_GROUPS))),
        *(Policies(each) for group in policies.GROUPS for each in _policies(group)),
        Bindings(),
        QueueUnits(),
        Works(),
    ]


def _served(kind: JobKind) -> Served:
    return Served(
        kind.resource,
        short_names=kind.short_names,
        categories=kind.categories,
        subresources=("scale",) if kind.scale else (),
        document=schemas.document(kind.resource),
        scale=kind.scale,
    )


def _policies(api_version: str) -> list[Served]:
    """Short names belong to the first group: kubectl warns when two groups have them."""
    group, version = api_version.split("/")
    first, served = api_version == policies.GROUPS[0], []
    shorts = {"PropagationPolicy": "pp", "ClusterPropagationPolicy": "cpp", "OverridePolicy": "op"}
    for kind, short in {**shorts, "ClusterOverridePolicy": "cop"}.items():
        namespaced = not kind.startswith("Cluster")
        resource = Resource(group, version, f"{kind.lower()[:-1]}ies", kind, namespaced=namespaced)
        served.append(Served(resource, (short,) if first else (), document=schemas.document(resource)))
    return served
