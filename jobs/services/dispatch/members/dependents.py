"""Objects that are propagated with a job (``propagateDeps``): sent before it, removed with the last job that refers to them.

If the member has an object of that name that Convoy did not create, it is used and not changed. A PersistentVolumeClaim holds
data: it is kept when the job is suspended or moved, and after the job has ended unless its annotation says ``Delete``.
"""

from collections.abc import Iterable
from typing import Any

from fleet.core.members import marks
from fleet.kube import resources
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberExists, MemberMissing, MemberRefused
from fleet.models import Cluster
from jobs.kinds import device_claims, gangs, registry
from jobs.kinds.base import DEVICES, Manifest
from jobs.kinds.pods import Reference, references
from jobs.models import Dependent, Job, Work
from jobs.services.lifecycle.works import IN_MEMBER

MARK = "convoy.dev/dependent"
RESOURCES: dict[str, Resource] = {
    "ConfigMap": resources.CONFIG_MAPS,
    "Secret": resources.SECRETS,
    "ServiceAccount": resources.SERVICE_ACCOUNTS,
    "PersistentVolumeClaim": resources.VOLUME_CLAIMS,
    Dependent.POD_GROUP: resources.SIGS_POD_GROUPS,
    "ResourceClaim": resources.RESOURCE_CLAIMS,
    "ResourceClaimTemplate": resources.RESOURCE_CLAIM_TEMPLATES,
}
_NEED_SERVED = frozenset({Dependent.POD_GROUP, *Dependent.DEVICE_CLAIMS})
"""Kinds that a cluster may lack."""
RETENTION = "convoy.dev/retention"
"""Annotation of a claim. ``Delete``: removed with the last job that refers to it. ``Retain``, the default: kept."""
_HOLD_DATA = frozenset({"PersistentVolumeClaim"})
_IMMUTABLE = _HOLD_DATA | frozenset(Dependent.DEVICE_CLAIMS)


def referred_objects(job: Job) -> set[Reference]:
    """The objects that the job's pod templates refer to."""
    kind = registry.kind_of(job.api_version, job.kind)
    objects: set[Reference] = set()
    for _, template in kind.templates(job.manifest):
        objects |= references(template.get("spec") or {})
        if group := gangs.group_named_by(template):
            objects.add(Reference(Dependent.POD_GROUP, group))
    return objects


def dependents_of(job: Job, cluster: Cluster) -> list[Dependent]:
    """The referred objects that the fleet stores and the cluster serves. All others are expected to exist in the member."""
    wanted = referred_objects(job)
    rows = Dependent.objects.filter(namespace=job.namespace, name__in={reference.name for reference in wanted})
    named = (row for row in rows if Reference(row.kind, row.name) in wanted)
    return [row for row in named if row.kind not in _NEED_SERVED or _serves(cluster, RESOURCES[row.kind])]


def counted_of(job: Job, cluster: Cluster) -> list[Dependent]:
    """Of these the claims of devices. They are sent whatever the policy says: the job was counted by them."""
    if DEVICES not in job.manifest:
        return []
    return [row for row in dependents_of(job, cluster) if row.kind in Dependent.DEVICE_CLAIMS]


def _serves(cluster: Cluster, resource: Resource) -> bool:
    return cluster.serves(resource.api_version, resource.kind)


def send(client: MemberClient, rows: Iterable[Dependent], author: MemberClient) -> None:
    """``author`` is the client that writes."""
    for row in rows:
        body, immutable = _marked(row.manifest, row.namespace), row.kind in _IMMUTABLE
        _send(client, author, RESOURCES[row.kind], body, immutable=immutable)


def _marked(manifest: Manifest, namespace: str) -> Manifest:
    metadata = dict(manifest.get("metadata") or {})
    metadata["namespace"] = namespace
    metadata["labels"] = {**(metadata.get("labels") or {}), MARK: "true", marks.MANAGED_BY: marks.MANAGER}
    return {**manifest, "metadata": metadata}


def _send(client: MemberClient, author: MemberClient, resource: Resource, body: Manifest, *, immutable: bool) -> None:
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        author.create(resource.path(namespace), body)
        return
    except MemberExists:
        if immutable:
            _require_as_sent(client, resource, body)
            return
    current = client.get(resource.path(namespace, name))
    if MARK not in ((current.get("metadata") or {}).get("labels") or {}) or _same(current, body):
        return
    version = current["metadata"]["resourceVersion"]
    author.replace(
        resource.path(namespace, name), {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
    )


def require_as_counted(client: MemberClient, job: Job, rows: Iterable[Dependent]) -> None:
    """Each claim must ask for what the job was counted by: the fleet's, among ``rows``, else the member's own.

    A template may have been deleted and applied anew since. Raises `MemberRefused`.
    """
    sent = {(row.kind, row.name): row.manifest for row in rows}
    for key, amounts in (job.manifest.get(DEVICES) or {}).items():
        kind, _, name = key.partition("/")
        owner = "the fleet" if (kind, name) in sent else "the cluster"
        current = sent.get((kind, name)) or _of_member(client, kind, job.namespace, name)
        if device_claims.amounts_of({**current, "kind": kind}) != amounts:
            raise MemberRefused(
                f"the {kind} {name} of {owner} asks for other devices than those by which the job was counted: "
                "make it as it was, or delete the job and apply it anew"
            )


def _of_member(client: MemberClient, kind: str, namespace: str, name: str) -> Manifest:
    try:
        return client.get(RESOURCES[kind].path(namespace, name))
    except MemberMissing:
        raise MemberRefused(
            f"neither the fleet nor the cluster has a {kind} {name} in namespace {namespace}: apply it to the fleet"
        ) from None


def _require_as_sent(client: MemberClient, resource: Resource, body: Manifest) -> None:
    """A claim of that name that is there already must ask for the devices by which the job was counted."""
    if body["kind"] not in Dependent.DEVICE_CLAIMS:
        return
    name = body["metadata"]["name"]
    current = client.get(resource.path(body["metadata"]["namespace"], name))
    if device_claims.amounts_of({**current, "kind": body["kind"]}) != device_claims.amounts_of(body):
        raise MemberRefused(
            f"its own {body['kind']} {name} asks for other devices than that of the fleet: delete it there, or rename that"
        )


def _same(current: Manifest, body: Manifest) -> bool:
    parts = [key for key in body if key not in ("apiVersion", "kind", "metadata")]
    return all(current.get(key) == body[key] for key in parts)


def no_longer_needed(job: Job, work: Work) -> list[Reference]:
    """The objects to which only this work's copy refers, of all copies of the namespace in that member."""
    unused = referred_objects(job)
    if not unused:
        return []
    others = Work.objects.filter(cluster_id=work.cluster_id, namespace=job.namespace, state__in=IN_MEMBER)
    uids = others.exclude(pk=work.pk).values_list("job_uid", flat=True)
    for other in Job.objects.filter(uid__in=uids).only("api_version", "kind", "manifest"):
        unused -= referred_objects(other)
    return sorted(unused)


def _is_deleted_with(job: Job, claim: Reference) -> bool:
    """Whether the claim's retention is ``Delete`` and no other unfinished job, waiting ones included, refers to it.

    The annotation is read from the claim that the fleet stores. If that was deleted, the data is kept.
    """
    row = Dependent.objects.filter(kind=claim.kind, namespace=job.namespace, name=claim.name).first()
    annotations = (row.manifest.get("metadata") or {}).get("annotations") if row else None
    if not isinstance(annotations, dict) or annotations.get(RETENTION) != "Delete":
        return False
    others = Job.objects.filter(namespace=job.namespace).exclude(pk=job.pk).exclude(state__in=Job.FINISHED)
    return not any(
        claim in referred_objects(other) for other in others.only("api_version", "kind", "manifest").iterator()
    )


def remove(client: MemberClient, job: Job, references: Iterable[Reference]) -> list[Reference]:
    """Removes the given objects from the member, except those that Convoy did not create there, and claims that are kept.

    Returns the claims that the member does not have, now or from the start. Raises `MemberChanged` after the last if one of
    them changed meanwhile.
    """
    namespace, absent = job.namespace, []
    changed: MemberChanged | None = None
    for reference in references:
        is_kept = reference.kind in _HOLD_DATA and not (job.deleting_at and _is_deleted_with(job, reference))
        path = RESOURCES[reference.kind].path(namespace, reference.name)
        try:
            current: dict[str, Any] = client.get(path)
            metadata = current.get("metadata") or {}
            if is_kept or MARK not in (metadata.get("labels") or {}):
                continue
            client.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
        except MemberChanged as e:
            changed = e
            continue
        except MemberDenied:
            continue
        except MemberMissing:
            pass
        if reference.kind in _HOLD_DATA:
            absent.append(reference)
    if changed is not None:
        raise changed
    return absent
