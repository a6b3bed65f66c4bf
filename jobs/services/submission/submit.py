"""Takes manifests in: jobs, policies, dependents, the quota tree. Everything is read and checked before anything is written.

All or nothing: one fault in one document and no document is applied. Applying the same file twice changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from structlog import get_logger

from fleet.changes import events, journal
from fleet.db import bulk
from fleet.errors import Conflict, FieldFault, InvalidInput
from fleet.kube import names
from fleet.kube.resources import PRIORITY_CLASSES, RESOURCE_CLAIMS, SIGS_POD_GROUPS, TRAINING_RUNTIMES
from fleet.services.auditing import audit
from fleet.services.authorization import namespaces
from jobs import snapshot, snapshot_topology, tracing
from jobs.core.failover.lifecycle import max_wait_s, parse_deadline
from jobs.core.gang import entitlement, priority_classes
from jobs.core.life.dependencies import AFTER
from jobs.core.life.jobs import JOB, JobEvent
from jobs.core.manifest_fields import Faults
from jobs.core.policies import data_placement, overrides
from jobs.core.policies import propagation as policies
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, change, job_event
from jobs.kinds import derived_names, device_claims, gangs, registry, training_runtime
from jobs.kinds.base import DEVICES, RESOLVED, Manifest, Reading
from jobs.models import Dependent, Job, Policy
from jobs.services.lifecycle import cycle_requests, dependencies, gang_fields, sizes, volume_claims, workload_policy
from jobs.services.lifecycle.accounting import attempt_leaves
from jobs.services.lifecycle.copies import copy_metadata
from jobs.services.scheduling.demand import entitlements, priorities, queueing
from jobs.services.submission import annotation_faults, deadlines, existing_rows, policy_claims
from jobs.services.submission.changes import actions, resizing, restarts, spec_changes
from jobs.services.submission.references import References
from quotas.core.trees import parsing as quota_trees
from quotas.core.trees.tree import Tree
from quotas.models import QuotaTree
from quotas.services import trees

log = get_logger(__name__)

_METADATA = ("name", "namespace", "labels", "annotations")
_SERVER_FILLED = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp"}
)
_POLICIES = (*policies.KINDS, *overrides.KINDS)
_Tree = tuple[Tree | None, int]
"""The quota tree that is in force, and its version."""
_CLUSTER_WIDE = Dependent.CLUSTER_WIDE | {kind for kind in _POLICIES if kind.startswith("Cluster")}


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one document."""

    kind: str
    namespace: str
    name: str
    uid: str
    action: str
    """created, configured or unchanged."""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Document:
    """One manifest, read; ``write`` stores it."""

    manifest: Manifest
    write: Callable[["_Document", str, datetime], Applied]
    warnings: list[str] = field(default_factory=list)
    reading: Reading = Reading()
    job: Job | None = None
    """The job that it changes, where that is known and locked."""

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def group(self) -> str:
        return registry.group_of(str(self.manifest["apiVersion"]))

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    def applied(self, uid: object, action: str) -> Applied:
        return Applied(self.kind, self.namespace, self.name, str(uid), action, self.warnings)


def apply(documents: Sequence[Mapping[str, Any]], *, by: str, now: datetime) -> list[Applied]:
    """Creates or updates every document, in one transaction; raises `InvalidInput` with every fault of all of them."""
    references = References(documents)
    read = [_parse_document(document, references) for document in documents]
    violations = workload_policy.faults([document.manifest for document, _ in read])
    faults = [
        FieldFault(f"[{i}].{fault.field}" if len(read) > 1 else fault.field, fault.detail)
        for i, (_, document_faults) in enumerate(read)
        for fault in (*document_faults, *violations[i])
    ]
    if faults:
        message = "; ".join(f"{fault.field} {fault.detail}" for fault in faults[:5])
        more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
        raise InvalidInput(f"nothing was applied: {message}{more}", tuple(faults))
    try:
        return _write(read, by, now)
    except IntegrityError as e:
        log.warning("write conflict", error=str(e).partition("\n")[0])
        raise Conflict("Another request has just created an object of the same name: apply it again.") from e


@transaction.atomic
def _write(read: Sequence[tuple[_Document, object]], by: str, now: datetime) -> list[Applied]:
    spaces = {document.namespace for document, _ in read} - {""}
    _lock(read, spaces)
    existing_rows.refuse_terminating(spaces, now)
    # Dependents, policies and the quota tree first: a job in the same file finds them.
    order = sorted(range(len(read)), key=lambda i: _rank(read[i][0]))
    fresh = _fresh(read)
    results = {i: read[i][0].write(read[i][0], by, now) for i in order if _rank(read[i][0]) < 2}
    created = _create_jobs([read[i][0] for i in fresh], by, now)
    results |= dict(zip(fresh, created, strict=True))
    _load_jobs([read[i][0] for i in order if i not in results])
    results |= {i: read[i][0].write(read[i][0], by, now) for i in order if i not in results}
    if any(document.kind in policies.KINDS for document, _ in read) or len(fresh) < len(read):
        policy_claims.claim_unclaimed(now)
    cycle_requests.request()
    return [results[i] for i in range(len(read))]


def _lock(read: Sequence[tuple[_Document, object]], spaces: set[str]) -> None:
    """Every row that may change, before the journal is written to: others hold their rows while they wait for it."""
    namespaces.keep_open(spaces)
    if any(AFTER in (document.manifest["metadata"].get("annotations") or {}) for document, _ in read):
        dependencies.lock()
    if len(read) == 1:
        return
    if any(document.write is _write_tree for document, _ in read):
        list(QuotaTree.objects.select_for_update(no_key=True).values_list("pk"))
    writers = {_write_dependent: Dependent, _write_policy: Policy, _write_job: Job}
    for write, model in writers.items():
        existing_rows.lock(model, (_names(document) for document, _ in read if document.write is write))


def _rank(document: _Document) -> int:
    return 2 if document.write is _write_job else 1 if document.kind in policies.KINDS else 0


def _parse_document(document: Mapping[str, Any], references: References) -> tuple[_Document, list[FieldFault]]:
    api_version, kind = str(document.get("apiVersion") or ""), str(document.get("kind") or "")
    faults = _head_faults(document, cluster_wide=kind in _CLUSTER_WIDE)
    manifest, warnings = _cleaned(document, cluster_wide=kind in _CLUSTER_WIDE)
    if (job_kind := registry.find(api_version, kind)) is not None:
        manifest = job_kind.without_filled_in(manifest)
        references.resolve(job_kind, manifest)
        reading = references.count_devices(job_kind, manifest, job_kind.read(manifest))
        faults += reading.faults
        if not faults:
            faults += [
                *annotation_faults.find(job_kind, manifest),
                *derived_names.faults(job_kind, manifest, reading.roles),
            ]
        return _Document(manifest, _write_job, warnings + list(reading.warnings), reading), faults
    if kind in policies.KINDS and api_version in policies.GROUPS:
        spec = policies.parse_propagation_policy(manifest, snapshot.known_kinds())
        message = [] if spec.faults else policies.warnings(manifest)
        faults += [*spec.faults, *policies.namespace_faults(manifest)]
        return _Document(manifest, _write_policy, warnings + message), faults
    if kind in overrides.KINDS and api_version in policies.GROUPS:
        policy_faults = overrides.parse_override_policy(manifest, snapshot.known_kinds()).faults
        faults += [*policy_faults, *policies.namespace_faults(manifest)]
        return _Document(manifest, _write_policy, warnings), faults
    if kind in Dependent.KINDS and api_version == "v1":
        return _Document(manifest, _write_dependent, warnings), faults + _dependent_faults(manifest)
    if (api_version, kind) == (SIGS_POD_GROUPS.api_version, SIGS_POD_GROUPS.kind):
        return _Document(manifest, _write_dependent, warnings), faults + gangs.pod_group_faults(manifest)
    if kind in Dependent.DEVICE_CLAIMS and api_version == RESOURCE_CLAIMS.api_version:
        return _Document(manifest, _write_dependent, warnings), faults + device_claims.faults_of(manifest)
    if kind in Dependent.RUNTIMES and api_version == TRAINING_RUNTIMES.api_version:
        return _Document(manifest, _write_dependent, warnings), faults + training_runtime.faults_of(manifest).found
    if (api_version, kind) == (PRIORITY_CLASSES.api_version, PRIORITY_CLASSES.kind):
        return _Document(manifest, _write_dependent, warnings), faults or priority_classes.faults_of(manifest)
    if (api_version, kind) == (quota_trees.API_VERSION, quota_trees.KIND):
        whole = dict(document)
        return _Document(whole, _write_tree), list(quota_trees.parse_tree(whole).faults)
    known = [*registry.names(), *(f"{group} {each}" for group in policies.GROUPS for each in _POLICIES)]
    known += [f"{TRAINING_RUNTIMES.api_version} {each}" for each in Dependent.RUNTIMES]
    known += [f"{RESOURCE_CLAIMS.api_version} {each}" for each in Dependent.DEVICE_CLAIMS]
    known += [f"v1 {each}" for each in Dependent.KINDS] + [f"{quota_trees.API_VERSION} {quota_trees.KIND}"]
    known += [f"{each.api_version} {each.kind}" for each in (PRIORITY_CLASSES, SIGS_POD_GROUPS)]
    kind_name = f"{api_version} {kind}".strip() or "nothing"
    return _Document(manifest, _write_job), [
        FieldFault("kind", f"{kind_name} is not known here; known are {', '.join(known)}")
    ]


def _dependent_faults(manifest: Manifest) -> list[FieldFault]:
    faults = Faults()
    data_placement.is_anywhere(manifest["metadata"].get("annotations") or {}, faults)
    return [*snapshot_topology.faults_of(manifest), *faults.found]


def _head_faults(document: Mapping[str, Any], *, cluster_wide: bool) -> list[FieldFault]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return [FieldFault("metadata", "must be an object with a name")]
    faults = []
    if detail := names.subdomain_fault(metadata.get("name")):
        faults.append(FieldFault("metadata.name", detail))
    if not cluster_wide and (detail := names.label_fault(metadata.get("namespace", "default"))):
        faults.append(FieldFault("metadata.namespace", detail))
    for key in ("labels", "annotations"):
        value = metadata.get(key) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            faults.append(FieldFault(f"metadata.{key}", "must be an object of text values: put numbers in quotes"))
        elif key == "labels":
            faults += [FieldFault(f"metadata.labels.{k}", d) for k, v in value.items() if (d := names.pair_fault(k, v))]
        elif entitlement.PRIORITY in value and (detail := entitlement.priority_fault(value[entitlement.PRIORITY])):
            faults.append(FieldFault(f"metadata.annotations.{entitlement.PRIORITY}", detail))
    return faults


def _cleaned(document: Mapping[str, Any], *, cluster_wide: bool) -> tuple[Manifest, list[str]]:
    """The manifest without what servers fill in, in its namespace; and warnings about what is left out."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    metadata_kept = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    if cluster_wide:
        metadata_kept.pop("namespace", None)
    else:
        metadata_kept.setdefault("namespace", "default")
    dropped = sorted(str(key) for key in metadata if key not in _METADATA and key not in _SERVER_FILLED)
    if metadata.get("name") and "generateName" in dropped:
        dropped.remove("generateName")  # the name was made of it
    warnings = [f"metadata.{key} is ignored" for key in dropped]
    body = {key: value for key, value in document.items() if key not in ("metadata", "status", RESOLVED, DEVICES)}
    return {**body, "metadata": metadata_kept}, warnings


def _write_job(document: _Document, by: str, now: datetime) -> Applied:
    key = {"kind": document.kind, "namespace": document.namespace, "name": document.name, "group": document.group}
    job = document.job or Job.objects.select_for_update(no_key=True).filter(**key).first()
    if job is None:
        return _create_jobs([document], by, now)[0]
    if job.deleting_at is not None:
        raise Conflict(f"{job} is being deleted; apply it again when it is gone")
    if sizes.manifest_asked_for(job) == document.manifest:
        return document.applied(job.uid, "unchanged")
    audit.remember_row(job)
    _update_job(job, document, by, now)
    return document.applied(job.uid, "configured")


def _fresh(read: Sequence[tuple[_Document, object]]) -> list[int]:
    """Which of them are jobs that are not there yet, each once."""
    keys = {_key(document): i for i, (document, _) in reversed(list(enumerate(read))) if _rank(document) == 2}
    there = existing_rows.find_jobs(_names(read[i][0]) for i in keys.values())
    return sorted(i for key, i in keys.items() if key not in there)


def _load_jobs(documents: Sequence[_Document]) -> None:
    """The jobs of many documents at once, which are locked by now; a second document of a job reads what the first has made."""
    found = existing_rows.jobs(map(_names, documents)) if len(documents) > 1 else {}
    for document in documents:
        document.job = found.pop(_key(document), None)


def _key(document: _Document) -> tuple[str, str, str, str]:
    return document.kind, document.namespace, document.name, document.group


def _names(document: _Document) -> existing_rows.Key:
    return document.name, document.namespace, document.kind


def _create_jobs(documents: Sequence[_Document], by: str, now: datetime) -> list[Applied]:
    """In a fixed number of statements, however many they are."""
    tree, candidates = snapshot.tree_in_force(), policy_claims.load_candidates() if documents else []
    jobs = [_new_job(document, tree, by, now) for document in documents]
    for job in jobs:
        priorities.fill(job, tree[0], by)
        deadlines.refuse_past(job, now)
        job.policy = policy_claims.select_policy(candidates, job)
    queueing.refuse_closed({job.leaf for job in jobs})
    tracing.submitted(jobs, now)
    bulk.insert(jobs)
    awaiting = [job for job in jobs if dependencies.asked_for(job)]
    if awaiting:
        dependencies.write(awaiting, now)
    lines = [job_event(job, "Submitted", f"Submitted by {by}") for job in jobs]
    versions = events.announce([change(job, journal.Action.ADDED) for job in jobs], now, lines)
    for job, version in zip(jobs, versions, strict=True):
        job.resource_version = version
    bulk.update(jobs, ["resource_version", *(["awaits"] if awaiting else [])])
    return [document.applied(job.uid, "created") for document, job in zip(documents, jobs, strict=True)]


def _new_job(document: _Document, tree: _Tree, by: str, now: datetime) -> Job:
    suspended = document.reading.suspended
    waits = Reason(Code.SUSPENDED, "submitted suspended") if suspended else _WAITS
    job = Job(
        kind=document.kind,
        namespace=document.namespace,
        name=document.name,
        api_version=document.manifest["apiVersion"],
        state=JOB.target(JobEvent.SUBMITTED_SUSPENDED if suspended else JobEvent.SUBMITTED),
        suspended=suspended,
        reason=waits.as_json(),
        submitted_by=by[:150],
        created_at=now,
        queued_at=now,
    )
    _fill(job, document, tree)
    return job


_WAITS = Reason(Code.WAITING_FOR_SCHEDULER, "submitted, not looked at by the scheduler yet")


def _fill(job: Job, document: _Document, tree: _Tree) -> None:
    job.manifest = document.manifest
    job.labels = document.manifest["metadata"].get("labels") or {}
    kind = registry.kind_of(job.api_version, job.kind)
    gang_fields.fill(job, kind, document.reading)
    job.ttl_s = kind.ttl_s(job.manifest)
    job.max_wait_s = max_wait_s(job.manifest)
    job.deadline_at = parse_deadline(job.manifest["metadata"].get("annotations"), job.created_at, Faults())
    document.warnings.extend(entitlements.fill_entitlements(job, *tree))
    document.warnings.extend(deadlines.warnings(job, tree[0]))


def _update_job(job: Job, document: _Document, by: str, now: datetime) -> None:
    """Everything may change while no copy of the job can run; else its suspend switch, labels and time to live."""
    if job.api_version != document.manifest["apiVersion"]:
        detail = f"{job} was submitted as {job.api_version}, which is not converted: delete it and apply it anew"
        raise InvalidInput(detail, (FieldFault("apiVersion", detail),))
    wanted = resizing.asked_for(job, document.manifest)
    if wanted is not None:
        # The sizes are decided by themselves; all else of the manifest is compared and stored at the size in force.
        document.manifest, document.reading = resizing.at_size_in_force(job, document.manifest)
    restarts_pods = spec_changes.require_allowed(job, document.manifest, suspended=document.reading.suspended)
    was = job.suspended
    if wanted is not None:
        resizing.request(job, wanted, by=by, now=now)
        document.manifest, document.reading = resizing.at_size_in_force(job, document.manifest)
    if document.manifest != job.manifest:
        before, roles = job.manifest, job.roles
        _write_manifest(job, document, by, now, keeps_growing=wanted is not None)
        if restarts_pods:
            restarts.restart(job, roles, by=by, now=now)
        else:
            copy_metadata.order(job, before, now)
    if document.reading.suspended and not was:
        actions.suspend(job, by="apply", now=now)
    elif was and not document.reading.suspended:
        actions.resume(job, by="apply", now=now)


def _write_manifest(job: Job, document: _Document, by: str, now: datetime, *, keeps_growing: bool) -> None:
    before, tree = priorities.former(job), snapshot.tree_in_force()
    awaited, leaf = dependencies.asked_for(job), job.leaf
    _fill(job, document, tree)
    if job.leaf != leaf:
        attempt_leaves.keep([job.pk], leaf)
    priorities.fill(job, tree[0], by, before)
    job.generation += 1
    job.submitted_by = by[:150]
    job.resize = job.resize if keeps_growing else None
    if dependencies.asked_for(job) != awaited:
        _await_others(job, document, now)
    filled = ("submitted_by", "resize", *gang_fields.FILLED, *entitlements.FILLED, *priorities.FILLED)
    job.save(
        update_fields=["manifest", "labels", "ttl_s", "max_wait_s", "deadline_at", "awaits", "generation", *filled]
    )
    announce_jobs([job], now)


def _await_others(job: Job, document: _Document, now: datetime) -> None:
    if job.attempt:
        document.warnings.append(f"{AFTER} is ignored: the job has started before")
    else:
        dependencies.write([job], now)


def _write_tree(document: _Document, by: str, now: datetime) -> Applied:
    applied = trees.apply(document.manifest, by=by, now=now)
    document.warnings.extend(applied.warnings)
    return document.applied(applied.row.uid, applied.action)


def _write_policy(document: _Document, by: str, now: datetime) -> Applied:
    return _write_row(Policy, document, now)


def _write_dependent(document: _Document, by: str, now: datetime) -> Applied:
    actions.require_may_move_nodes(document.kind, document.namespace, document.name, by)
    applied = _write_row(Dependent, document, now)
    if snapshot_topology.concerns(document.kind, document.namespace, document.name):
        applied = _admit_table(document, applied, now)
    volume_claims.written(document.manifest, now)
    return applied


def _admit_table(document: _Document, applied: Applied, now: datetime) -> Applied:
    """The table of switches counts from now on, also if it was there unchanged: another user may have stored it."""
    row = Dependent.objects.get(uid=applied.uid)
    if row.moves_nodes:
        return applied
    row.moves_nodes = True
    row.save(update_fields=["moves_nodes"])
    return applied if applied.action != "unchanged" else _announced(document, row, journal.Action.MODIFIED, now)


def _write_row(model: type[Policy] | type[Dependent], document: _Document, now: datetime) -> Applied:
    key = {"kind": document.kind, "namespace": document.namespace, "name": document.name}
    row = model.objects.select_for_update(no_key=True).filter(**key).first()
    if row is None:
        row = model.objects.create(**key, manifest=document.manifest, created_at=now)
        return _announced(document, row, journal.Action.ADDED, now)
    if row.manifest == document.manifest:
        return document.applied(row.uid, "unchanged")
    device_claims.refuse_other_spec(row.manifest, document.manifest)
    audit.remember_row(row)
    row.manifest, row.generation = document.manifest, row.generation + 1
    row.save(update_fields=["manifest", "generation"])
    return _announced(document, row, journal.Action.MODIFIED, now)


def _announced(document: _Document, row: Policy | Dependent, action: journal.Action, now: datetime) -> Applied:
    row.resource_version = events.announce([change(row, action)], now)[0]
    row.save(update_fields=["resource_version"])
    return document.applied(row.uid, "created" if action is journal.Action.ADDED else "configured")
