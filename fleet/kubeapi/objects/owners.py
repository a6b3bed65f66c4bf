"""Who manages which field of the objects of this API, in a table beside them: their rows have no place for it.

The arithmetic is `fleet.kube.writes.managed`. What the fleet fills in belongs to no manager.
"""

from collections.abc import Sequence

from fleet.kube.server.kinds import Object
from fleet.kube.writes import managed
from fleet.models import FieldOwners


def shown(objects: Sequence[Object]) -> list[Object]:
    """The objects with their managers, where any are known."""
    uids = [shown["metadata"]["uid"] for shown in objects]
    known = dict(FieldOwners.objects.filter(object_uid__in=uids).values_list("object_uid", "entries")) if uids else {}
    return [managed.with_entries(shown, known.get(shown["metadata"]["uid"], [])) for shown in objects]


def keep(stored: Object, noted: Object) -> Object:
    """The stored object with the managers that are noted in the other."""
    entries = noted["metadata"].get("managedFields") or []
    FieldOwners.objects.update_or_create(object_uid=stored["metadata"]["uid"], defaults={"entries": entries})
    return managed.with_entries(stored, entries)


def forget(uid: str) -> None:
    FieldOwners.objects.filter(object_uid=uid).delete()
