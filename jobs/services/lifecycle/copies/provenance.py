"""Which objects in a member are copies of our jobs. An object's own labels are a claim of its author, not a fact.

A copy is believed when it stands where its work says (cluster, kind, namespace, name) and is the very object that was
made: its uid is the recorded one or, before that is recorded, its mark is genuine. Works of an older version of Convoy
have neither; there the place is enough. What is not believed is reported, and neither removed nor read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from structlog import get_logger

from fleet.core.members import marks
from fleet.core.members.observed import Mark
from fleet.db import prepared
from fleet.db.prepared import KEY, UID
from fleet.kube.resources import Resource
from fleet.models import Cluster
from fleet.services.clusters import object_events
from fleet.services.members import signing
from jobs.kinds.base import Kind, Manifest, set_metadata
from jobs.models import Work

log = get_logger(__name__)
Key = tuple[UUID, int]
_MOST_REPORTED = 100
"""Objects of one member that one process reports at most: a user who may write objects must not fill the history."""
_reported: dict[int, set[str]] = {}


class Verdict(StrEnum):
    OURS = "ours"
    """The copy that its work made."""
    STRAY = "stray"
    """Made by Convoy, and not the object that its work recorded: a late sender made it, or the member restored it."""
    UNKNOWN = "unknown"
    """Made by Convoy for an attempt that the database does not know: it was restored from an older backup."""
    FOREIGN = "foreign"
    """Not made by Convoy, whatever its labels say."""


def put_marks(kind: Kind, body: Manifest, work: Work) -> None:
    """Marks a copy that is to be sent, and its pods."""
    uid, attempt, metadata = str(work.job_uid), work.attempt, body["metadata"]
    place = kind.resource.api_version, kind.resource.kind, metadata["namespace"], metadata["name"]
    set_metadata(body, "labels", {marks.MARK: signing.sign(work.cluster, "copy", uid, str(attempt), *place)})
    pods = signing.sign_pods(work.cluster, uid, attempt, metadata["namespace"])
    for _, template in kind.templates(body):
        set_metadata(template, "labels", {marks.POD_MARK: pods})


class _Sent(NamedTuple):
    """What its work recorded of a copy."""

    place: tuple[str, ...]
    object_uid: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Provenance:
    """Judges one batch of objects of one member: which of them are copies that Convoy sent."""

    cluster: Cluster
    works: dict[Key, _Sent]

    def judge(self, resource: Resource, key: Key, item: Manifest) -> Verdict:
        metadata = item["metadata"]
        place = resource.api_version, resource.kind, metadata.get("namespace", ""), metadata.get("name", "")
        work = self.works.get(key)
        if work is None:
            return Verdict.UNKNOWN if self._is_genuine(key, place, metadata) else Verdict.FOREIGN
        if place != work.place:
            return Verdict.FOREIGN
        if work.object_uid:
            if metadata.get("uid") == work.object_uid:
                return Verdict.OURS
            return Verdict.STRAY if self._is_genuine(key, place, metadata) else Verdict.FOREIGN
        return Verdict.OURS if not work.marked or self._is_genuine(key, place, metadata) else Verdict.FOREIGN

    def _is_genuine(self, key: Key, place: tuple[str, ...], metadata: Manifest) -> bool:
        """Asked only where nothing else decides: it costs a signature."""
        mark = (metadata.get("labels") or {}).get(marks.MARK)
        return signing.is_genuine(self.cluster, mark, "copy", str(key[0]), str(key[1]), *place)

    def report(self, resource: Resource, item: Manifest, why: str, now: datetime) -> None:
        """Records once what is not believed."""
        metadata = item["metadata"]
        known = _reported.setdefault(self.cluster.pk, set())
        namespace, name = str(metadata.get("namespace", "")), str(metadata.get("name", ""))
        named = f"{resource.kind} {namespace}/{name}"[:300]
        if named in known or len(known) >= _MOST_REPORTED:
            return
        known.add(named)
        log.warning("object in a member is not believed", cluster=self.cluster.name, object=named, why=why)
        message = f"{named} in {self.cluster.name} {why}"
        object_events.record(self.cluster, resource.kind, namespace, name, "ObjectNotBelieved", message, now)


def load_provenance(cluster_id: int, keys: Iterable[Key]) -> Provenance:
    rows = _WORKS.values(cluster=cluster_id, uids=list({uid for uid, _ in keys}))
    known = _CLUSTER.objects(pk=cluster_id)
    cluster = known[0] if known else Cluster.objects.get(pk=cluster_id)  # which raises that it has left
    works = {(uid, attempt): _Sent(tuple(place), of, marked) for uid, attempt, of, marked, *place in rows}
    return Provenance(cluster, works)


_CLUSTER = prepared.Rows(
    lambda param: Cluster.objects.filter(pk=param("pk", KEY)).only("uid", "name", "member_uid").order_by()
)
_WORKS = prepared.Rows(
    lambda param: (
        Work.objects.filter(cluster_id=param("cluster", KEY), job_uid__in=param("uids", UID))
        .order_by()
        .values_list("job_uid", "attempt", "object_uid", "marked", "api_version", "kind", "namespace", "name")
    )
)


def unmarked(cluster_id: int, claims: set[tuple[Mark, str]]) -> set[tuple[Mark, str]]:
    """The (owner, namespace) pairs of pods whose work was sent before marks existed."""
    rows = Work.objects.filter(cluster_id=cluster_id, job_uid__in={mark.job_uid for mark, _ in claims}, marked=False)
    return claims & {
        (Mark(uid, attempt), space) for uid, attempt, space in rows.values_list("job_uid", "attempt", "namespace")
    }
