"""The job that pods belong to, as the member has it: its bounds, its switch, and its record of notices.

A job is found through the controllers of its pods: of those the fleet knows as kinds, the outermost one.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fleet.kube.resources import Resource
from fleet.member.client import Object
from fleet.member.errors import MemberRefused
from jobs.kinds import registry
from jobs.kinds.base import Kind
from jobs.runtime import notices as notice
from jobs.runtime.notices import JobRecord, Notice, PodRecord, Scope
from supervisor.core import facts
from supervisor.core.facts import PodFacts
from supervisor.core.planning import Begun
from supervisor.member import Member

_DEEPEST = 4
"""Owners above a pod: a JobSet's pods have three."""


@dataclass(slots=True)
class MemberJob:
    """``kind`` None: the pods have no job of a known kind, and nothing but the pods themselves is written to."""

    namespace: str
    kind: Kind | None = None
    name: str = ""
    uid: str = ""
    least: Mapping[str, int] = field(default_factory=dict)
    records: dict[str, JobRecord] = field(default_factory=dict)
    _written: str = ""

    @classmethod
    def read(cls, resource: Resource, manifest: Object) -> "MemberJob":
        meta = manifest["metadata"]
        kind = registry.kind_of(resource.api_version, resource.kind)
        text = (meta.get("annotations") or {}).get(notice.NOTICES)
        records = notice.read_records(text, str(meta.get("uid")))
        return cls(
            str(meta.get("namespace")),
            kind,
            meta["name"],
            str(meta.get("uid")),
            _least(kind, manifest),
            records,
            text or "",
        )

    @property
    def stopping(self) -> Notice | None:
        """The notice to the whole job, until the job is suspended."""
        stops = (record.notice for record in self.records.values() if _is_stop(record) and record.stopped is None)
        return next(stops, None)

    @property
    def stop_began(self) -> bool:
        """Whether a pod has heard the notice to the whole job, or has left since."""
        entries = [
            pod
            for record in self.records.values()
            for pod in record.pods.values()
            if _is_stop(record) and record.stopped is None
        ]
        return any(pod.heard is not None or pod.left is not None for pod in entries)

    @property
    def begun(self) -> dict[str, Begun]:
        """By the uid of their pods, the notices of pods that have not left."""
        entries = [(pod, record.notice) for record in self.records.values() for pod in record.pods.values()]
        return {pod.uid: Begun(sent, pod.restarts, pod.heard) for pod, sent in entries if pod.left is None}

    @property
    def recorded(self) -> set[tuple[str, str]]:
        """Ids of notices with the uids of their pods, as they stand on the job: of many pods not all have room there."""
        records = notice.read_records(self._written, self.uid)
        return {(id, pod.uid) for id, record in records.items() for pod in record.pods.values()}

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be recorded."""
        return self.stopping is None and all(
            pod.left is not None for record in self.records.values() for pod in record.pods.values()
        )

    def note_given(self, gives: Iterable[tuple[PodFacts, Notice]]) -> None:
        for pod, sent in gives:
            record = self.records.setdefault(sent.id, JobRecord(sent))
            if (entry := self._entry(pod, sent)) is None or entry.left is not None:
                entry = record.pods[pod.name] = PodRecord(pod.uid)
            entry.restarts = sent.restarts

    def note_heard(self, pod: PodFacts, sent: Notice, now: float) -> None:
        if (entry := self._entry(pod, sent)) is not None:
            entry.heard = entry.heard or now

    def heard(self, pod: PodFacts, sent: Notice) -> float | None:
        """When the pod heard the notice, which may be written on no object yet."""
        entry = self._entry(pod, sent)
        return entry.heard if entry else None

    def _entry(self, pod: PodFacts, sent: Notice) -> PodRecord | None:
        entry = self.records[sent.id].pods.get(pod.name) if sent.id in self.records else None
        return entry if entry is not None and entry.uid == pod.uid else None

    def note_withdrawn(self, pod: PodFacts) -> None:
        if pod.notice is None or self._entry(pod, pod.notice) is None:
            return
        self.records[pod.notice.id].pods.pop(pod.name, None)
        if not self.records[pod.notice.id].pods:
            del self.records[pod.notice.id]

    def note_stopped(self, now: float) -> None:
        for record in self.records.values():
            if _is_stop(record) and record.stopped is None:
                record.stopped = now

    def note_pods(self, pods: Iterable[PodFacts], now: float) -> None:
        """Records who has heard, and who has left; a pod that is not there any more has left."""
        by_uid = {pod.uid: pod for pod in pods}
        for record in self.records.values():
            for entry in record.pods.values():
                pod = by_uid.get(entry.uid)
                if pod is not None:
                    entry.heard = entry.heard or (pod.heard if pod.notice else None)
                    entry.step = pod.step if pod.step is not None else entry.step
                if entry.left is None and (pod is None or pod.has_left or pod.phase in ("Succeeded", "Failed")):
                    entry.left = now

    async def write(self, member: Member) -> None:
        """Writes the record if it has changed."""
        text = notice.written(self.records, self.uid)
        if self.kind is None or text == self._written:
            return
        notes = {"annotations": {notice.NOTICES: text}, "uid": self.uid}
        await member.patch(self.kind.resource, self.namespace, self.name, {"metadata": notes})
        self._written = text

    async def suspend(self, member: Member) -> None:
        """Sets the job's own switch."""
        if self.kind is None:
            return
        manifest = await member.get(self.kind.resource, self.namespace, self.name)
        if manifest["metadata"].get("uid") != self.uid:
            return
        suspended = copy.deepcopy(manifest)
        self.kind.suspend(suspended, True)
        if change := _difference(manifest, suspended):
            change["metadata"] = {**change.get("metadata", {}), "uid": self.uid}
            await member.patch(self.kind.resource, self.namespace, self.name, change)


async def find(member: Member, pod: PodFacts) -> MemberJob:
    """The job of a pod. Raises MemberAway; what the member refuses to show is no job."""
    job, owner = MemberJob(pod.namespace), pod.owner
    for _ in range(_DEEPEST):
        kind = registry.find(owner.api_version, owner.kind) if owner else None
        if owner is None or kind is None:
            break
        try:
            manifest = await member.get(kind.resource, pod.namespace, owner.name)
        except MemberRefused:
            break
        if manifest["metadata"].get("uid") != owner.uid:
            break
        job = MemberJob.read(kind.resource, manifest)
        owner = facts.owner_of(manifest["metadata"])
    return job


def key_of(manifest: Object) -> str:
    """The key of the pods of a job, as the pods themselves have it (`PodFacts.job`)."""
    meta = manifest["metadata"]
    return facts.job_of(str(meta.get("namespace") or ""), meta.get("labels") or {}, str(meta.get("uid")))


def _is_stop(record: JobRecord) -> bool:
    return record.notice.scope is Scope.JOB


def _least(kind: Kind, manifest: Object) -> dict[str, int]:
    """A manifest that is not sound has no bounds: its job is stopped as a whole."""
    if kind.read(manifest).faults:
        return {}
    return {role: bounds.least for role, bounds in kind.bounds(manifest).items()}


def _difference(before: Object, after: Object) -> Object:
    """What to merge so that ``before`` becomes ``after``, which has more fields or others, and none less."""
    return {
        key: _difference(before[key], value) if isinstance(value, dict) and isinstance(before.get(key), dict) else value
        for key, value in after.items()
        if before.get(key) != value
    }
