"""What the manifests of jobs refer to and are read by, found among the objects of the same request, then among stored ones.

A job that has been placed keeps what it was read by: its size was charged and placed, whatever has become of the object since.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.kinds import device_claims
from jobs.kinds.base import DEVICES, RESOLVED, Kind, Manifest, Reading
from jobs.models import Dependent, Job

_Key = tuple[str, str, str]


class References:
    """Of one request."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self._beside = {key: document for document in documents if (key := _key(document)) is not None}

    def resolve(self, kind: Kind, manifest: Manifest) -> None:
        """Writes what a job's manifest refers to into it, in place."""
        if not kind.refers:
            return
        kind.resolve(manifest, self._find)
        if (resolved := _of_placed_job(kind, manifest).get(RESOLVED)) is not None:
            manifest[RESOLVED] = resolved

    def count_devices(self, kind: Kind, manifest: Manifest, reading: Reading) -> Reading:
        """Writes what the claims of the job's pods ask for into its manifest, in place; returns its reading with that."""
        if reading.faults or not device_claims.names_claims(kind, manifest):
            return reading
        device_claims.resolve(kind, manifest, self._find, _of_placed_job(kind, manifest).get(DEVICES) or {})
        return device_claims.counted(kind, manifest, reading)

    def _find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        if (beside := self._beside.get((kind, namespace, name))) is not None:
            return dict(beside)
        row = Dependent.objects.filter(kind=kind, namespace=namespace, name=name).first()
        return row.manifest if row else None


def _key(document: Mapping[str, Any]) -> _Key | None:
    kind, metadata = document.get("kind"), document.get("metadata")
    if kind not in (*Dependent.RUNTIMES, *Dependent.DEVICE_CLAIMS) or not isinstance(metadata, dict):
        return None
    namespace = "" if kind in Dependent.CLUSTER_WIDE else str(metadata.get("namespace") or "default")
    return str(kind), namespace, str(metadata.get("name") or "")


def _of_placed_job(kind: Kind, manifest: Manifest) -> Manifest:
    """The manifest of the placed job of that name, with what it is read by; empty if there is no such job."""
    metadata = manifest["metadata"]
    named = {"namespace": metadata.get("namespace", ""), "name": metadata.get("name", "")}
    of_kind = Job.objects.filter(kind=kind.resource.kind, api_version=kind.resource.api_version, **named)
    job = of_kind.filter(attempt__gt=0).only("manifest").first()
    return job.manifest if job else {}
