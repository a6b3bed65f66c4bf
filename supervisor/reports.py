"""Takes reports of trainings, and writes the latest of each job on its copy: at most once in five seconds.

A job is known by the SHA-256 of its token, which the fleet has put on its copy: there is no right to read Secrets here. What
is kept in memory is lost with the process, and read again from the copies. A report that states the last step is written before
it is answered, once for each copy, because the process that sent it may end the job next.
"""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from structlog import get_logger

from fleet.kube.resources import Resource
from fleet.member.client import Object
from fleet.member.errors import MemberAway, MemberChanged, MemberError, MemberMissing, MemberRefused
from jobs.runtime import notices, progress
from jobs.runtime.notices import Scope
from jobs.runtime.progress import Progress, Unprocessable
from supervisor import jobs
from supervisor.core.facts import PodFacts
from supervisor.core.limits import Bucket, Buckets
from supervisor.member import Member
from supervisor.store import Store

log = get_logger(__name__)

INTERVAL_S = 5.0
PER_S, BURST = 2.0, 10.0
"""Reports of one job."""
LOOKUPS_PER_S, LOOKUPS_BURST = 20.0, 200.0
"""Requests to the member's API for jobs that are not known here; and as many, apart from those, to look again at known ones."""
LOOKUPS_OF_ADDRESS_PER_S, LOOKUPS_OF_ADDRESS_BURST = 2.0, 10.0
"""The first ones for one address: it reports of one job, or of a few where pods share that of their node."""
_ADDRESSES = 16_384
KNOWN_FOR_S, UNKNOWN_FOR_S = 60.0, 5.0
"""How long it is believed what the token of a job is, and that a job has none or another one."""
MOST = 4096
"""Jobs that are kept in memory."""
THREADS, WAITING_WRITES = 8, 4
"""Requests to the member side by side, and how many of those may write what has waited: looks and last steps go before."""
MOST_HEARING = 256
"""Pods of which it is being written that they have heard their notice."""

Key = tuple[Resource, str, str]
"""Resource, namespace and name of a copy."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: HTTPStatus
    message: str = ""
    stop: bool = False
    """The job was asked to stop, as a whole."""


NOT_ITS_TOKEN = Answer(HTTPStatus.FORBIDDEN, "the token is not that of this job")


@dataclass(slots=True)
class Job:
    uid: str = ""
    digest: str = ""
    """Of its token; empty: it has none."""
    pods: str = ""
    """The key of its pods in the store."""
    read_at: float = 0.0
    written_at: float = 0.0
    progress: Progress | None = None
    has_ended: bool = False
    """Its last step was written at once."""
    is_pending: bool = False
    """The progress is newer than what the copy has."""
    reports: Bucket = field(default_factory=lambda: Bucket(PER_S, BURST, BURST, 0.0))
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Reports:
    def __init__(
        self,
        member: Member,
        store: Store,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._member, self._store, self._clock, self._monotonic = member, store, clock, monotonic
        self._jobs: OrderedDict[Key, Job] = OrderedDict()
        self._lookups = Bucket(LOOKUPS_PER_S, LOOKUPS_BURST, LOOKUPS_BURST, monotonic())
        self._again = Bucket(LOOKUPS_PER_S, LOOKUPS_BURST, LOOKUPS_BURST, monotonic())
        self._of_addresses = Buckets(LOOKUPS_OF_ADDRESS_PER_S, LOOKUPS_OF_ADDRESS_BURST, _ADDRESSES)
        self._looking: dict[Key, asyncio.Task[Job]] = {}
        self._waiting_writes = asyncio.Semaphore(WAITING_WRITES)
        self._hearing: dict[str, asyncio.Task[None]] = {}

    async def take(self, key: Key, token: str, body: bytes, address: str) -> Answer:
        """Answers one report. Whether there is such a job is not said to what does not have its token."""
        if not token:
            return NOT_ITS_TOKEN
        try:
            job = await self._find(key, token, address)
        except MemberAway as e:
            log.warning("report not checked", error=str(e))
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "the cluster's API does not answer: try again")
        if job is None:
            return Answer(HTTPStatus.TOO_MANY_REQUESTS, "too many jobs report for the first time: try again")
        if not _is_token(token, job):
            return NOT_ITS_TOKEN
        now = self._monotonic()
        if not job.reports.take(now):
            return Answer(HTTPStatus.TOO_MANY_REQUESTS, f"this job reports more than {PER_S:g} times a second")
        try:
            latest = progress.received(body, job.progress, self._clock())
        except Unprocessable as e:
            return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, str(e))
        is_end = latest.has_all_steps and not job.has_ended
        job.progress, job.is_pending = latest, True
        if is_end or now - job.written_at >= INTERVAL_S:
            is_written = await self._write(key, job)
            if is_end and not is_written:
                return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "the last step is not written yet: send it again")
            job.has_ended = job.has_ended or is_end
        if stop := self._is_asked_to_stop(job):
            self._note_heard(job, address)
        return Answer(HTTPStatus.OK, stop=stop)

    async def flush(self, *, at_once: bool = False) -> None:
        """Writes what has waited for its interval, or all that waits."""
        since = self._monotonic() - (0 if at_once else INTERVAL_S)
        due = [(key, job) for key, job in self._jobs.items() if job.is_pending and job.written_at <= since]
        await asyncio.gather(*(self._write_in_turn(key, job) for key, job in due))

    async def close(self) -> None:
        """Ends what is being written beside answers."""
        tasks = list(self._hearing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find(self, key: Key, token: str, address: str) -> Job | None:
        """The job, read from the member where it is not known or may be known wrongly; None: too many were.

        What has the token of a known job is never refused because of others: that is believed longer while too many are read.
        """
        now, job = self._monotonic(), self._jobs.get(key)
        is_its = job is not None and _is_token(token, job)
        if job is not None:
            self._jobs.move_to_end(key)
            if now - job.read_at < (KNOWN_FOR_S if is_its else UNKNOWN_FOR_S):
                return job
        if key not in self._looking:
            if not (self._again.take(now) if is_its else self._may_look(address, now)):
                return job if is_its else None
            self._looking[key] = asyncio.create_task(self._look(key))
        return await asyncio.shield(self._looking[key])

    def _may_look(self, address: str, now: float) -> bool:
        return self._of_addresses.take(address, now) and self._lookups.take(now)

    async def _look(self, key: Key) -> Job:
        try:
            manifest = await self._read(key)
        finally:
            del self._looking[key]
        now, known = self._monotonic(), self._jobs.get(key)
        job = Job(read_at=now) if manifest is None else self._job(manifest, now)
        if known is not None and known.uid == job.uid and job.uid:
            known.read_at, known.digest = now, job.digest
            job = known
        self._jobs[key] = job
        self._forget()
        return job

    async def _read(self, key: Key) -> Object | None:
        try:
            manifest = await self._member.get(*key)
        except (MemberMissing, MemberRefused):
            return None
        return manifest if manifest.get("kind") == key[0].kind else None

    def _job(self, manifest: Object, now: float) -> Job:
        meta = manifest["metadata"]
        uid, notes = str(meta.get("uid") or ""), meta.get("annotations") or {}
        latest = progress.read(notes.get(progress.PROGRESS), uid)
        # Another process may have written it a moment ago.
        written_at = now - (max(self._clock() - latest.at, 0.0) if latest else INTERVAL_S)
        digest = str(notes.get(progress.TOKEN_DIGEST) or "")
        return Job(
            uid, digest, jobs.key_of(manifest), now, written_at, latest, reports=Bucket(PER_S, BURST, BURST, now)
        )

    def _forget(self) -> None:
        """Of too many, first names without a token, which may be made up, and then those that reported longest ago."""
        idle = [key for key, job in self._jobs.items() if not job.is_pending]
        for key in sorted(idle, key=lambda key: bool(self._jobs[key].digest))[: max(len(self._jobs) - MOST, 0)]:
            del self._jobs[key]

    async def _write_in_turn(self, key: Key, job: Job) -> None:
        async with self._waiting_writes:
            await self._write(key, job)

    async def _write(self, key: Key, job: Job) -> bool:
        """Whether nothing is left to write. Failures are tried again after the interval, unless the copy is gone."""
        async with job.writing:
            if not job.is_pending or job.progress is None:
                return True
            job.is_pending, job.written_at = False, self._monotonic()
            notes = {progress.PROGRESS: job.progress.written(job.uid)}
            try:
                await self._member.patch(*key, {"metadata": {"uid": job.uid, "annotations": notes}})
            except (MemberMissing, MemberChanged):
                self._jobs.pop(key, None)
            except MemberError as e:
                job.is_pending = True
                log.warning("progress not written", job="/".join(key[1:]), error=str(e))
                return False
            return True

    def _is_asked_to_stop(self, job: Job) -> bool:
        """As a whole: where only some of its pods are, the others go on without them."""
        pods = self._store.pods_of(job.pods)
        return any(pod.notice is not None and pod.notice.scope is Scope.JOB and pod.is_live for pod in pods)

    def _note_heard(self, job: Job, address: str) -> None:
        """The pod that is answered so has heard its notice. Of pods that share an address it is not known which one was.

        It is written beside the answer, which the process waits for with little patience. Where too many are being written,
        the pod's next report writes it.
        """
        pods = [pod for pod in self._store.pods_of(job.pods) if pod.ip == address and pod.is_live]
        if len(pods) != 1 or pods[0].notice is None or pods[0].heard is not None:
            return
        uid = pods[0].uid
        if uid not in self._hearing and len(self._hearing) < MOST_HEARING:
            task = asyncio.create_task(self._write_heard(pods[0], notices.stamp(self._clock())))
            self._hearing[uid] = task
            task.add_done_callback(lambda _: self._hearing.pop(uid))

    async def _write_heard(self, pod: PodFacts, at: str) -> None:
        try:
            async with self._waiting_writes:
                self._store.learn_written(await self._member.annotate_pod(pod, {notices.HEARD: at}))
        except MemberError as e:
            log.warning("heard not written", pod=pod.name, error=str(e))


def _is_token(token: str, job: Job) -> bool:
    return bool(job.digest) and hmac.compare_digest(digest(token), job.digest)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
