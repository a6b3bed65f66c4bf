"""Kinds whose writes are manifests handed to `jobs.services.submission.submit`, as every other door does."""

import json
from functools import cached_property
from typing import Any

from fleet.errors import NotFound
from fleet.kube import crds
from fleet.kube.schema import structural
from fleet.kube.schema.schemas import Schema
from fleet.kube.server.kinds import Object, Write
from fleet.kubeapi.objects.kinds import RowKind, head, stamp
from jobs.kinds import schemas
from jobs.kinds.base import without_resolved
from jobs.services.submission import manifests, submit

WRITABLE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class ManifestKind(RowKind):
    verbs = WRITABLE

    @property
    def schema(self) -> Schema:
        return schemas.schema(self.served.resource) or super().schema

    @property
    def kept(self) -> Schema:
        return schemas.kept(self.served.resource) or super().kept

    @cached_property
    def defaults(self) -> Schema | None:
        """Defaults of the definition: shown for fields that are not written, and never stored."""
        return crds.defaults(self.served.resource)

    def create(self, document: Object, write: Write) -> None:
        self._apply(document, write)

    def update(self, document: Object, write: Write) -> None:
        if self.defaults:
            stored = self.one(document["metadata"]["name"], write).manifest
            document = structural.without_defaults(self.defaults, document, stored)
        self._apply(document, write)

    def _apply(self, document: Object, write: Write) -> None:
        """Through the one reader of manifests: what it refuses from a file, it refuses here."""
        read = manifests.parse(json.dumps(document).encode())
        for applied in submit.apply(read, by=write.by, now=write.now):
            write.warnings += applied.warnings

    def one(self, name: str, write: Write) -> Any:
        """The row that is written to."""
        key = {self.name_field: name}
        if self.served.resource.namespaced:
            key[self.namespace_field] = write.namespace
        row = self.rows().filter(**key).first()
        if row is None:
            raise NotFound(f"{self.name} {name} is gone")
        return row


def rendered(row: Any, api_version: str, **more: object) -> Object:
    """The manifest as submitted, with what a server fills in."""
    stored = row.manifest["metadata"]
    labels_and_annotations = {key: stored[key] for key in ("labels", "annotations") if stored.get(key)}
    metadata = head(row, creationTimestamp=stamp(row.created_at), **labels_and_annotations, **more)
    body = {
        key: value
        for key, value in without_resolved(row.manifest).items()
        if key not in ("apiVersion", "kind", "metadata")
    }
    return {"apiVersion": api_version, "kind": row.kind, "metadata": metadata, **body}
