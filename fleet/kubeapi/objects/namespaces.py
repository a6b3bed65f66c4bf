"""Namespaces: those that were created, and those in use. Deleting one deletes what the fleet has in it.

What is in a namespace is not known here: it is given as `Contents`. A delete of a namespace that is not empty needs a
confirmation, the number of its objects in an annotation, because no client asks before it sends a delete.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Count, Min, Q, QuerySet

from fleet.changes.journal import Action, Entry
from fleet.core import tags
from fleet.errors import Forbidden, invalid
from fleet.kube import names
from fleet.kube.discovery import Served
from fleet.kube.requests import status
from fleet.kube.resources import NAMESPACES
from fleet.kube.server.kinds import BY_NAME, Exact, Key, Object, Write
from fleet.kube.tables import AGE, Column
from fleet.kubeapi.objects.kinds import Change, Kind, stamp
from fleet.models import Namespace
from fleet.services.authorization import access, namespaces

CONFIRM = "convoy.dev/delete-objects"
"""Annotation: how many objects are to be deleted with the namespace."""
NAME_LABEL = "kubernetes.io/metadata.name"
DEFAULT = "default"
_FIELD = f"metadata.annotations[{CONFIRM}]"


@dataclass(frozen=True, slots=True)
class Use:
    """Of one namespace by one sort of objects."""

    since: datetime
    staying: int
    """How many of them nothing deletes yet."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Rows that are in namespaces, and the service that deletes one."""

    rows: QuerySet[Any]
    delete: Callable[..., object]
    leaves_later: bool = False
    """Whether a deleted row is there for a while, with ``deleting_at``."""

    def use(self, within: Collection[str] | None) -> dict[str, Use]:
        """By namespace."""
        rows = self.rows.exclude(namespace="").order_by()
        rows = rows if within is None else rows.filter(namespace__in=within)
        staying = Count("pk", filter=Q(deleting_at=None)) if self.leaves_later else Count("pk")
        counts = rows.values("namespace").annotate(since=Min("created_at"), staying=staying)
        return {each["namespace"]: Use(each["since"], each["staying"]) for each in counts}

    def staying(self, namespace: str) -> QuerySet[Any]:
        rows = self.rows.filter(namespace=namespace)
        return rows.filter(deleting_at=None) if self.leaves_later else rows


class Namespaces(Kind):
    served = Served(NAMESPACES, ("ns",))
    verbs = ("create", "delete", "get", "list", "patch", "update", "watch")
    remedies: Mapping[str, str] = {"deletecollection": "namespaces are deleted one by one: name the namespace"}
    follows = True
    columns = (Column("Status", lambda shown, now: shown.get("status", {}).get("phase", "")), AGE)

    def __init__(self, contents: Sequence[Contents], of_the_fleet: Callable[[], Iterable[str]]) -> None:
        """``of_the_fleet`` returns the namespaces of objects that stay, whatever is deleted."""
        self._contents, self._of_the_fleet = contents, of_the_fleet

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        within = {exact[BY_NAME]} if exact.get(BY_NAME) else None
        for name, shown in sorted(self._all(within).items()):
            mine = namespaces is None or name in namespaces
            if mine and (after is None or name > after[1]):
                yield shown

    def _all(self, within: Collection[str] | None) -> dict[str, Object]:
        """The namespaces there are, of these names or all, by name."""
        rows = Namespace.objects.all() if within is None else Namespace.objects.filter(name__in=within)
        created = {row.name: row for row in rows}
        uses: dict[str, list[Use]] = {}
        for contents in self._contents:
            for name, use in contents.use(within).items():
                uses.setdefault(name, []).append(use)
        fixed = {DEFAULT, *self._of_the_fleet()}
        fixed = fixed if within is None else fixed & set(within)
        installed = _installed_at() if fixed - created.keys() - uses.keys() else None
        shown = {}
        for name in {*created, *uses, *fixed}:
            row, used = created.get(name), uses.get(name, [])
            is_leaving = row is not None and row.deleting_at is not None
            if is_leaving and not used and name not in fixed:
                continue
            times = [use.since for use in used] + ([row.created_at] if row else [])
            stays = row is not None or name in fixed or any(use.staying for use in used)
            stays = stays and not (is_leaving and used)
            annotations = row.annotations if row else {}
            shown[name] = _namespace(name, min(times, default=installed), annotations, stays=stays)
        return shown

    def home(self, namespace: str, name: str) -> str:
        return name

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        """Whatever changes in a namespace may be the first or the last thing that is in it."""
        last = {each.namespace: each for each in entries if each.namespace}
        there = self._all(last.keys()) if last else {}
        return [
            Change(each.version, Action.MODIFIED if name in there else Action.DELETED, "", name, name, there.get(name))
            for name, each in last.items()
        ]

    def create(self, document: Object, write: Write) -> None:
        name = document["metadata"].get("name")
        if detail := names.label_fault(name):
            raise invalid("metadata.name", detail)
        namespaces.create(name, self._annotations(document, write), now=write.now)

    def update(self, document: Object, write: Write) -> None:
        namespaces.save(document["metadata"]["name"], self._annotations(document, write), now=write.now)

    def _annotations(self, document: Object, write: Write) -> dict[str, str]:
        labels, annotations = (document["metadata"].get(field) or {} for field in ("labels", "annotations"))
        if fault := next(tags.annotation_faults(annotations), None):
            raise invalid(f"metadata.{fault[0]}", fault[1])
        dropped = sorted(map(str, labels.keys() - {NAME_LABEL}))
        write.warnings += [f"metadata.labels.{key} is ignored: namespaces have no labels here" for key in dropped]
        return dict(annotations)

    def remove(self, current: Object, options: Object, write: Write) -> Object:
        name = current["metadata"]["name"]
        if name == DEFAULT or access.is_closed(name):
            raise Forbidden("this namespace may not be deleted")
        remaining = [(contents, list(contents.staying(name))) for contents in self._contents]
        self._require_rights(name, {row.kind for _, rows in remaining for row in rows}, write)
        _require_confirmed(current, [row.kind for _, rows in remaining for row in rows])
        namespaces.terminate(name, now=write.now)
        while any(rows for _, rows in remaining):
            for contents, rows in remaining:
                for row in rows:
                    contents.delete(row, by=write.by, now=write.now)
            # What was being created when the deletion began.
            remaining = [(contents, list(contents.staying(name))) for contents in self._contents]
        left = self._all({name}).get(name)
        if left is None:
            namespaces.remove(name, now=write.now)
        return left or status.success(NAMESPACES, name, current["metadata"]["uid"])

    def _require_rights(self, name: str, kinds: Iterable[str], write: Write) -> None:
        """The right to delete a namespace is not the right to delete all that is in it: a token may be for some kinds."""
        user = access.user_named(write.by)
        for kind in sorted(kinds):
            access.require(user, "delete", kind, name)


def _require_confirmed(current: Object, kinds: Sequence[str]) -> None:
    if not kinds:
        return
    name, metadata = current["metadata"]["name"], current["metadata"]
    if (metadata.get("annotations") or {}).get(CONFIRM) == str(len(kinds)):
        return
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    command = f"kubectl annotate --overwrite namespace {name} {CONFIRM}={len(kinds)}"
    raise invalid(_FIELD, f"must be {len(kinds)}: {name} has {counts}. To delete them with it: {command}, and again")


def _namespace(name: str, since: datetime | None, annotations: Mapping[str, str], *, stays: bool) -> Object:
    metadata: Object = {"name": name, "uid": name, "resourceVersion": "1", "labels": {NAME_LABEL: name}}
    if since is not None:
        metadata["creationTimestamp"] = stamp(since)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active" if stays else "Terminating"},
    }


def _installed_at() -> datetime | None:
    """When the fleet's database was made."""
    first = MigrationRecorder.Migration.objects.order_by("applied").values_list("applied", flat=True).first()
    return first if isinstance(first, datetime) else None
