"""Field ownership: server-side apply, and the updates of ``metadata.managedFields`` that all other writes make.

Both return the new object with its ``managedFields``. A manager is identified by its name, its operation (Apply or Update), the
API version and the subresource. The current time is an argument. Validation, defaults and resource versions are handled
elsewhere.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from fleet.kube.requests.status import KubeError, invalid
from fleet.kube.resources import Resource
from fleet.kube.schema.schemas import Schema, compact
from fleet.kube.writes import fieldsets
from fleet.kube.writes.fieldsets import NONE, FieldSet, Path

Object = dict[str, Any]
APPLY, UPDATE = "Apply", "Update"
BEFORE: Final = "before-first-apply"
"""Manager of the fields an object had before ownership was recorded."""
KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_UNMANAGED = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"),
            *("generation", "managedFields", "resourceVersion"),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Manager:
    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key of the manager. The API version does not distinguish appliers."""
        return self.name, self.operation, "" if self.operation == APPLY else self.api_version, self.subresource


@dataclass(frozen=True, slots=True)
class Claim:
    manager: Manager
    fields: FieldSet
    time: str
    entry: Object | None = None
    """The original entry of ``managedFields``, as long as the claim has not changed."""

    def less(self, taken: FieldSet) -> "Claim":
        if self.fields.isdisjoint(taken):
            return self
        return replace(self, fields=self.fields - taken, entry=None)


Claims = dict[tuple[str, str, str, str], Claim]


@dataclass(frozen=True, slots=True)
class Conflict:
    manager: Manager
    path: Path


def parse_managed_fields(metadata: Mapping[str, Any]) -> Claims:
    """Read the owners from ``metadata.managedFields``; malformed entries are skipped."""
    claims: Claims = {}
    for entry in metadata.get("managedFields") or []:
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            continue
        words = (str(entry.get(name) or "") for name in ("manager", "operation", "apiVersion", "subresource"))
        manager = Manager(*words)
        fields = fieldsets.from_fields(entry.get("fieldsV1"))
        claims[manager.identity] = Claim(manager, fields, str(entry.get("time") or ""), entry)
    return claims


def written(claims: Iterable[Claim]) -> list[Object]:
    """The claims in the form of ``metadata.managedFields``: appliers first, then by time."""
    ordered = sorted(claims, key=lambda claim: (claim.manager.operation, claim.time, claim.manager.identity))
    return [_entry(claim) for claim in ordered]


def _entry(claim: Claim) -> Object:
    if claim.entry is not None:
        return claim.entry
    manager = claim.manager
    entry: Object = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": claim.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fieldsets.to_fields(claim.fields),
    }
    return {**entry, "subresource": manager.subresource} if manager.subresource else entry


def updated(schema: Schema, old: Object, new: Object, manager: Manager, now: datetime) -> Object:
    """The object after a write other than an apply: the manager owns the fields that changed.

    For a new object, ``old`` has the fields that are always present. ``new`` may contain other managedFields, if the client
    edits them; ``[{}]`` removes them all.
    """
    claims = _brought(old, new, manager)
    changes = fieldsets.compared(schema, _bare(old), _bare(new))
    remaining = _less(claims, changes.changed | changes.removed, but=None)
    if mine := changes.changed - _UNMANAGED:
        before = remaining.get(manager.identity)
        fields = mine | (before.fields if before else NONE)
        remaining[manager.identity] = Claim(manager, fields, _timestamp(now))
    return _with_claims(new, remaining)


def _brought(old: Object, new: Object, manager: Manager) -> Claims:
    brought = new["metadata"].get("managedFields")
    if manager.subresource or not brought:
        return parse_managed_fields(old.get("metadata") or {})
    if brought == [{}]:
        return {}
    if brought == (old.get("metadata") or {}).get("managedFields"):
        return parse_managed_fields(old["metadata"])
    edited = {key: replace(claim, entry=None) for key, claim in parse_managed_fields(new["metadata"]).items()}
    return edited or parse_managed_fields(old.get("metadata") or {})


def applied(schema: Schema, live: Object, config: Object, manager: Manager, now: datetime, *, force: bool) -> Object:
    """``live`` with ``config`` applied. Raises Conflict with all conflicting fields, unless ``force`` is set.

    Fields that the manager applied before but no longer does are removed, unless another manager owns them too.
    """
    if config["metadata"].get("managedFields"):
        raise KubeError(400, "metadata.managedFields must be nil")
    if twice := fieldsets.doubled(schema, config):
        message = f"{fieldsets.spelled(twice[:-1])}: duplicate entries for key {fieldsets.spelled(twice[-1:])}"
        raise KubeError(400, f"failed to create typed patch object: {message}")
    claims = parse_managed_fields(live.get("metadata") or {})
    exists, bare, wanted = bool(live.get("metadata", {}).get("uid")), _bare(live), _bare(config)
    if not claims and exists:
        earlier = Manager(BEFORE, UPDATE, manager.api_version)
        claims[earlier.identity] = Claim(earlier, fieldsets.of_value(schema, bare) - _UNMANAGED, _timestamp(now))
    last = claims.get(manager.identity)
    mine = Claim(manager, fieldsets.of_value(schema, wanted) - _UNMANAGED, _timestamp(now))
    claims[manager.identity] = mine
    result = fieldsets.merged(schema, bare, wanted)
    if last:
        result = _less_forgotten(schema, result, last.fields, claims.values())
    changes = fieldsets.compared(schema, bare, result)
    conflicts = _conflicts(claims.values(), changes.changed, mine)
    if conflicts and not force and not _by_client_before(schema, live, manager, conflicts):
        raise refusal(conflicts)
    remaining = _less(claims, changes.changed | changes.removed, but=mine)
    if last and last.fields == mine.fields and result == bare:
        remaining[manager.identity] = last if last.manager == manager else replace(last, manager=manager, entry=None)
    # Without what no manager owns, nothing may be left of it: an annotation was all there was, and is given up.
    metadata = {**(result.get("metadata") or {}), **_unowned(live if exists else config)}
    if manager.name == KUBECTL and LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {**metadata["annotations"], LAST_APPLIED: _last_applied(config)}
    return _with_claims({**result, "metadata": metadata}, remaining)


def _last_applied(config: Object) -> str:
    """The annotation for client-side apply, so that kubectl can switch back to it."""
    metadata = {key: value for key, value in config["metadata"].items() if key != "managedFields"}
    if isinstance(annotations := metadata.get("annotations"), dict):
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return compact({**config, "metadata": metadata}) + "\n"


def checked(body: Any, resource: Resource, name: str, *, new: bool) -> Object:
    """Checks kind, version and name of an apply patch. Only a patch of an existing object may omit the name."""
    if not isinstance(body, dict):
        raise KubeError(400, "error decoding YAML: the body is not an object")
    if (version := body.get("apiVersion") or "") != resource.api_version:
        message = f"Specified patch version: {version}, expected: {resource.api_version}"
        raise KubeError(400, f"Incorrect version specified in apply patch. {message}")
    if (kind := body.get("kind")) != resource.kind:
        raise invalid(resource, name, "kind", f'Invalid value: "{kind}": must be {resource.kind}')
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise KubeError(400, f"{resource.kind}: metadata must be an object")
    sent_name = metadata.get("name")
    if new and not sent_name:
        raise KubeError(400, f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if sent_name and sent_name != name:
        raise KubeError(400, f"the name of the object ({sent_name}) does not match the name on the URL ({name})")
    return {**body, "metadata": metadata}


def _less_forgotten(schema: Schema, merged: Any, last: FieldSet, claims: Iterable[Claim]) -> Any:
    owned = frozenset().union(*(claim.fields for claim in claims))
    named, everything = fieldsets.with_named(schema, last), fieldsets.of_value(schema, merged)
    everything = fieldsets.with_named(schema, everything)
    remaining = fieldsets.with_named(schema, fieldsets.of_value(schema, fieldsets.without(schema, merged, named)))
    removed = everything - remaining - fieldsets.with_named(schema, owned)
    expected = fieldsets.with_named(schema, fieldsets.of_value(schema, fieldsets.without(schema, merged, removed)))
    return fieldsets.without(schema, merged, (everything - expected) & named)


def _conflicts(claims: Iterable[Claim], changed: FieldSet, mine: Claim) -> list[Conflict]:
    others = sorted((claim for claim in claims if claim is not mine), key=lambda claim: claim.manager.identity)
    return [
        Conflict(claim.manager, path) for claim in others for path in sorted(claim.fields & changed, key=fieldsets.rank)
    ]


def _by_client_before(schema: Schema, live: Object, manager: Manager, conflicts: list[Conflict]) -> bool:
    """Whether all conflicts are fields that kubectl itself applied before on the client side, which is no conflict."""
    noted = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED) if manager.name == KUBECTL else None
    try:
        before = json.loads(noted or "null")
    except ValueError:
        return False
    if not isinstance(before, dict):
        return False
    same = fieldsets.of_value(schema, before) - fieldsets.compared(schema, before, _bare(live)).modified
    return all(each.path in same or each.path[-1] == f"f:{LAST_APPLIED}" for each in conflicts)


def refusal(conflicts: list[Conflict]) -> KubeError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{conflict.manager.name}"{_how(conflict.manager)}',
            "field": fieldsets.spelled(conflict.path),
        }
        for conflict in conflicts
    ]
    return KubeError(409, _conflict_message(conflicts), details={"causes": causes})


def _conflict_message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        who = f'"{only.manager.name}"{_how(only.manager)}'
        return f"Apply failed with 1 conflict: conflict with {who}: {fieldsets.spelled(only.path)}"
    lines: list[str] = []
    for conflict in conflicts:
        head = f'conflicts with "{conflict.manager.name}"{_how(conflict.manager)}:'
        lines += [head] if head not in lines else []
        lines.append(f"- {fieldsets.spelled(conflict.path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _how(manager: Manager) -> str:
    """The `using ...` part of a conflict: an updater is named with its API version, an applier without."""
    if manager.operation == APPLY:
        return ""
    part = f" with subresource {json.dumps(manager.subresource)}" if manager.subresource else ""
    return f"{part} using {manager.api_version}"


def _less(claims: Claims, taken: FieldSet, *, but: Claim | None) -> Claims:
    remaining = {key: claim if claim is but else claim.less(taken) for key, claim in claims.items()}
    return {key: claim for key, claim in remaining.items() if claim.fields}


def _bare(document: Object) -> Object:
    """The object without unmanaged fields that every write changes."""
    metadata = {
        key: value
        for key, value in (document.get("metadata") or {}).items()
        if ("f:metadata", f"f:{key}") not in _UNMANAGED
    }
    return {**document, "metadata": metadata}


def _unowned(document: Object) -> Object:
    metadata = document.get("metadata") or {}
    names = (path[1][2:] for path in _UNMANAGED if len(path) == 2)
    return {name: metadata[name] for name in names if name in metadata and name != "managedFields"}


def _with_claims(document: Object, claims: Claims) -> Object:
    return with_entries(document, written(claims.values()))


def with_entries(document: Object, entries: list[Any]) -> Object:
    """The object with these ``managedFields``."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": {**metadata, **({"managedFields": entries} if entries else {})}}


def _timestamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
