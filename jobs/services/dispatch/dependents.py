"""Objects that travel with a job (``propagateDeps``): sent before it, removed with the last job that refers to them.

An object of the same name that Convoy did not make in the member is left as it is, and used. A PersistentVolumeClaim
holds data: it stays through every suspension and move, and after its jobs too unless its annotation says otherwise.
"""

from collections.abc import Iterable
from typing import Any

from fleet.core.members import marks
from fleet.kube import resources
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberExists, MemberMissing
from jobs.kinds import registry
from jobs.kinds.base import Manifest
from jobs.kinds.pods import Reference, references
from jobs.models import Dependent, Job, Work
from jobs.services.lifecycle.works import IN_MEMBER

MARK = "convoy.dev/dependent"
RESOURCES: dict[str, Resource] = {
    "ConfigMap": resources.CONFIG_MAPS,
    "Secret": resources.SECRETS,
    "ServiceAccount": resources.SERVICE_ACCOUNTS,
    "PersistentVolumeClaim": resources.VOLUME_CLAIMS,
}
RETENTION = "convoy.dev/retention"
"""Annotation of a claim: ``Delete`` lets it go with the last job that refers to it; else (``Retain``) it stays."""
_IMMUTABLE = frozenset({"PersistentVolumeClaim"})
_HOLD_DATA = _IMMUTABLE


def referred_objects(job: Job) -> set[Reference]:
    """What the job's pods name."""
    kind = registry.kind_of(job.api_version, job.kind)
    found: set[Reference] = set()
    for _, template in kind.templates(job.manifest):
        found |= references(template.get("spec") or {})
    return found


def dependents_of(job: Job) -> list[Dependent]:
    """Those of them the fleet knows; others are expected to be in the member already."""
    names = referred_objects(job)
    rows = Dependent.objects.filter(namespace=job.namespace, name__in={each.name for each in names})
    return [row for row in rows if Reference(row.kind, row.name) in names]


def send(client: MemberClient, rows: Iterable[Dependent]) -> None:
    for row in rows:
        _send(client, RESOURCES[row.kind], _marked(row.manifest, row.namespace), immutable=row.kind in _IMMUTABLE)


def _marked(manifest: Manifest, namespace: str) -> Manifest:
    metadata = dict(manifest.get("metadata") or {})
    metadata["namespace"] = namespace
    metadata["labels"] = {**(metadata.get("labels") or {}), MARK: "true", marks.MANAGED_BY: marks.MANAGER}
    return {**manifest, "metadata": metadata}


def _send(client: MemberClient, resource: Resource, body: Manifest, *, immutable: bool) -> None:
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        client.create(resource.path(namespace), body)
        return
    except MemberExists:
        if immutable:
            return
    found = client.get(resource.path(namespace, name))
    if MARK not in ((found.get("metadata") or {}).get("labels") or {}) or _same(found, body):
        return
    version = found["metadata"]["resourceVersion"]
    client.replace(
        resource.path(namespace, name), {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
    )


def _same(found: Manifest, body: Manifest) -> bool:
    parts = [key for key in body if key not in ("apiVersion", "kind", "metadata")]
    return all(found.get(key) == body[key] for key in parts)


def no_longer_needed(job: Job, work: Work) -> list[Reference]:
    """What only this work's copy referred to in its member, among the copies of its namespace there."""
    rest = referred_objects(job)
    if not rest:
        return []
    others = Work.objects.filter(cluster_id=work.cluster_id, namespace=job.namespace, state__in=IN_MEMBER)
    uids = others.exclude(pk=work.pk).values_list("job_uid", flat=True)
    for other in Job.objects.filter(uid__in=uids).only("api_version", "kind", "manifest"):
        rest -= referred_objects(other)
    return sorted(rest)


def _goes_with(job: Job, claim: Reference) -> bool:
    """By the fleet's own object: one that is deleted there says nothing any more, and data is kept. Waiting jobs count."""
    row = Dependent.objects.filter(kind=claim.kind, namespace=job.namespace, name=claim.name).first()
    notes = (row.manifest.get("metadata") or {}).get("annotations") if row else None
    if not isinstance(notes, dict) or notes.get(RETENTION) != "Delete":
        return False
    others = Job.objects.filter(namespace=job.namespace).exclude(pk=job.pk).exclude(state__in=Job.FINISHED)
    return not any(
        claim in referred_objects(other) for other in others.only("api_version", "kind", "manifest").iterator()
    )


def remove(client: MemberClient, job: Job, names: Iterable[Reference]) -> list[Reference]:
    """Removes those of them that Convoy brought there and that hold no data, or that are to go with the job.

    Returns the claims that are not there any more, or never were.
    """
    namespace, absent = job.namespace, []
    for each in names:
        stays = each.kind in _HOLD_DATA and not (job.deleting_at and _goes_with(job, each))
        path = RESOURCES[each.kind].path(namespace, each.name)
        try:
            found: dict[str, Any] = client.get(path)
            metadata = found.get("metadata") or {}
            if stays or MARK not in (metadata.get("labels") or {}):
                continue
            client.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
        except (MemberChanged, MemberDenied):
            continue
        except MemberMissing:
            pass
        if each.kind in _HOLD_DATA:
            absent.append(each)
    return absent
