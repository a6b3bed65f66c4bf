"""Who manages which field of the objects of this door, kept beside them: what a write changed is the writer's.

The arithmetic is `fleet.kube.managed`; here it is read, written down and shown. What the fleet fills in is nobody's.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fleet.kube import builtin, managed
from fleet.kube.managed import APPLY, UPDATE, Manager
from fleet.kube.options import WriteOptions
from fleet.kubeapi.kinds import Kind, Object
from fleet.models import FieldOwners


def shown(items: Sequence[Object]) -> list[Object]:
    """With their managers, where any are known."""
    uids = [each["metadata"]["uid"] for each in items]
    known = dict(FieldOwners.objects.filter(object_uid__in=uids).values_list("object_uid", "entries")) if uids else {}
    return [_with(each, known[uid]) if (uid := each["metadata"]["uid"]) in known else each for each in items]


def note(kind: Kind, old: Object | None, new: Object, options: WriteOptions, now: datetime) -> Object:
    """The object as it is now, after a write that was no apply, with its managers."""
    before = builtin.always(kind.served.resource) if old is None else _bare(shown([old])[0])
    manager = Manager(options.manager, UPDATE, kind.served.resource.api_version)
    made = managed.updated(kind.schema, before, _bare(new), manager, now)
    return _keep(new, made["metadata"].get("managedFields") or [])


def applied(kind: Kind, live: Object | None, config: Object, options: WriteOptions, now: datetime) -> Object:
    """What is to be there after a server-side apply; raises Conflict where others manage what it changes."""
    before = builtin.always(kind.served.resource) if live is None else _bare(shown([live])[0])
    manager = Manager(options.manager, APPLY, kind.served.resource.api_version)
    return managed.applied(kind.schema, before, _bare(config), manager, now, force=options.force)


def keep_applied(new: Object, made: Object) -> Object:
    return _keep(new, made["metadata"].get("managedFields") or [])


def forget(uid: str) -> None:
    FieldOwners.objects.filter(object_uid=uid).delete()


def _keep(new: Object, entries: list[Any]) -> Object:
    FieldOwners.objects.update_or_create(object_uid=new["metadata"]["uid"], defaults={"entries": entries})
    return _with(new, entries) if entries else new


def _with(found: Object, entries: list[Any]) -> Object:
    return {**found, "metadata": {**found["metadata"], "managedFields": entries}}


def _bare(found: Object) -> Object:
    return {key: value for key, value in found.items() if key != "status"}
