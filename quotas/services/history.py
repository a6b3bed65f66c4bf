"""What one generation of the quota tree changed against the one before, node by node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quotas import queries
from quotas.models import QuotaRevision
from quotas.services import edits, scopes


@dataclass(frozen=True, slots=True)
class Difference:
    """A node as written before and after, its children left aside; None: it was not there."""

    path: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def differences(revision: QuotaRevision) -> list[Difference]:
    earlier = queries.revisions().filter(generation__lt=revision.generation).first()
    return between(earlier.manifest or {} if earlier else {}, revision.manifest or {})


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    old, new = _nodes(before), _nodes(after)
    return [Difference(path, old.get(path), new.get(path)) for path in scopes.touched_paths(before, after)]


def _nodes(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        path: {key: value for key, value in node.items() if key not in ("children", "name")}
        for path, node in edits.walk(manifest)
    }
