"""Looks at jobs whose pods or nodes have changed, and does what is planned for them: one look at a job at a time.

The order of writes is what makes a kill harmless: the job's record, the word to the process, the notice on the pod with the
answer, the deletion. Each is derived again from what stands on the objects. Where no record can be kept the notice on the pod
comes before the word.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from structlog import get_logger

from fleet.kube.resources import PODS
from fleet.member.client import Object
from fleet.member.errors import MemberAway, MemberChanged, MemberError, MemberMissing, MemberRefused
from jobs.runtime import notices as notice
from jobs.runtime.notices import Notice
from supervisor import jobs
from supervisor.core import facts, planning
from supervisor.core.facts import How, PodFacts
from supervisor.core.planning import Action, Delete, Give, JobView, Notify, PodAction, Suspend, Withdraw
from supervisor.core.signals import NOTICE_S
from supervisor.jobs import MemberJob
from supervisor.member import Member
from supervisor.store import Store

log = get_logger(__name__)

NotifyPod = Callable[[str], Awaitable[bool]]
RETRY_S = 1.0
"""Between two tries to reach a pod, or a member that did not do what was asked."""
SIDE_BY_SIDE = 64
"""Pods that are dealt with at the same time: each has a connection or a request."""
PROMPT_S = 0.25
"""How long the notice on a pod waits for the answer of its process, to be written with it."""
_AGAIN = 0.0


@dataclass
class Supervisor:
    member: Member
    store: Store
    notify: NotifyPod
    clock: Callable[[], float] = time.time
    notice_s: Mapping[str, float] = field(default_factory=lambda: dict(NOTICE_S))
    _jobs: dict[str, MemberJob] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    """When a job is to be looked at although nothing has changed."""
    _looking: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._turns = asyncio.Semaphore(SIDE_BY_SIDE)
        self._done = asyncio.Event()
        """A look at a job has ended."""

    async def recover(self) -> None:
        """Takes up what a former process left: also of jobs that have no pods any more."""
        for resource, manifest in await self.member.recorded_jobs():
            job = MemberJob.read(resource, manifest)
            if job.is_settled:
                continue
            key = self._key_of(job, manifest)
            self._jobs[key] = job
            self._due[key] = self.clock()

    def tick(self) -> float:
        """Begins to look at all jobs that are due; returns after how many seconds to be called again."""
        now = self.clock()
        due = self.store.changed | {job for job, at in self._due.items() if at <= now}
        self.store.changed = set()
        for job in due:
            if job in self._looking:
                self._due[job] = now
                continue
            self._due.pop(job, None)
            if job in self._jobs or self._concerns(job):
                self._looking[job] = asyncio.create_task(self._look(job))
        waiting = [at for job, at in self._due.items() if job not in self._looking]
        return max(min(waiting, default=now + RETRY_S) - now, 0.01)

    async def wait(self, seconds: float) -> None:
        """Until something has changed, a look has ended, or the time is over."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self._done, self.store.delivered)]
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        self._done.clear()
        self.store.delivered.clear()

    async def look(self, job: str) -> float | None:
        """Does what is planned for one job, until nothing more can be done now; returns when to look again."""
        while (again := await self._once(job)) == _AGAIN:
            pass
        return again

    def _concerns(self, job: str) -> bool:
        pods = self.store.pods_of(job)
        managed = any(pod.how for pod in pods)
        return managed and (any(pod.notice for pod in pods) or bool(self.store.signals_of(pods)))

    async def _look(self, job: str) -> None:
        again: float | None = self.clock() + RETRY_S
        try:
            again = await self.look(job)
        except MemberError as e:
            log.warning("job not looked at to the end", job=job, error=str(e))
        finally:
            del self._looking[job]
            if again is not None:
                self._due[job] = min(again, self._due.get(job, again))
            self._done.set()

    async def _once(self, key: str) -> float | None:
        """One plan, carried out; `_AGAIN`: something was written, by which there may be more to do."""
        pods = self.store.pods_of(key)
        job = await self._job(key, pods)
        now = self.clock()
        view = JobView(pods, self.store.signals_of(pods), job.least, job.stopping, job.begun, job.stop_began)
        actions = planning.plan(view, now, self.notice_s)
        gives, at_once = [action for action in actions if isinstance(action, Give)], set[str]()
        if gives:
            # The record before the pods: it fixes the deadline, and what a former process did can be seen from it.
            job.note_given((give.pod, give.notice) for give in gives)
            recorded = job.recorded if await self._write(job) else set()
            # Only notices that begin now: of one that began before the process may have left, which its pod does not show.
            begins = [give for give in gives if give.notice.at == now]
            at_once = {give.pod.uid for give in begins if (give.notice.id, give.pod.uid) in recorded}
        if any(isinstance(action, Suspend) for action in actions):
            await self._suspend(job)
        of_pods = [action for action in actions if not isinstance(action, Suspend)]
        done = await asyncio.gather(*(self._do(action, job, at_once=action.pod.uid in at_once) for action in of_pods))
        if not gives:
            job.note_pods(self.store.pods_of(key), now)
            await self._write(job)
        if any(done):
            return _AGAIN
        return self._next(key, job, actions, now)

    def _next(self, key: str, job: MemberJob, actions: list[Action], now: float) -> float | None:
        if actions:
            return now + RETRY_S
        deadlines = [pod.notice.deadline for pod in self.store.pods_of(key) if pod.notice]
        deadlines += [job.stopping.deadline] if job.stopping else []
        ahead = [deadline for deadline in deadlines if deadline > now]
        if ahead:
            return min(ahead)
        if job.is_settled and not deadlines:
            self._jobs.pop(key, None)
            return None
        return now + RETRY_S

    async def _job(self, key: str, pods: list[PodFacts]) -> MemberJob:
        if key not in self._jobs and pods:
            self._jobs[key] = await jobs.find(self.member, pods[0])
        return self._jobs.get(key) or MemberJob("")

    async def _do(self, action: PodAction, job: MemberJob, *, at_once: bool) -> bool:
        """Whether something was written."""
        async with self._turns:
            try:
                return await self._carry_out(action, job, at_once=at_once)
            except MemberMissing:
                self.store.forget(action.pod)
                return True
            except (MemberAway, MemberChanged, MemberRefused) as e:
                log.warning("not done", action=type(action).__name__, error=str(e))
                return False

    async def _carry_out(self, action: PodAction, job: MemberJob, *, at_once: bool) -> bool:
        match action:
            case Give(pod, given):
                await self._give(pod, given, job, at_once=at_once and pod.how is How.KUBEAI)
            case Notify(pod):
                return await self._notify(pod, job)
            case Withdraw(pod):
                job.note_withdrawn(pod)
                self.store.learn_written(await self.member.annotate_pod(pod, {notice.NOTICE: None}))
            case Delete(pod, grace_s):
                self.store.learn_written(await self.member.delete_pod(pod, grace_s))
        return True

    async def _notify(self, pod: PodFacts, job: MemberJob) -> bool:
        assert pod.notice is not None  # noqa: S101
        heard = job.heard(pod, pod.notice)
        if heard is None:
            if not await self.notify(pod.ip):
                return False
            heard = self.clock()
            job.note_heard(pod, pod.notice, heard)
        self.store.learn_written(await self.member.annotate_pod(pod, {notice.HEARD: notice.stamp(heard)}))
        return True

    async def _give(self, pod: PodFacts, given: Notice, job: MemberJob, *, at_once: bool) -> None:
        """``at_once``: the job's record says by now that the pod gets notice, so that its process need not wait for one more
        request. A silent process is asked again after that, when the notice stands on its pod.
        """
        notes: dict[str, str | None] = {notice.NOTICE: given.written(pod.uid)}
        if at_once and not pod.has_left and self.clock() < given.deadline:
            try:
                async with asyncio.timeout(PROMPT_S):
                    if await self.notify(pod.ip):
                        job.note_heard(pod, given, self.clock())
            except TimeoutError:
                log.debug("no answer yet", pod=f"{pod.namespace}/{pod.name}")
        heard = job.heard(pod, given)
        if heard is not None:
            notes[notice.HEARD] = notice.stamp(heard)
        try:
            answer = await self.member.annotate_pod(pod, notes, version=pod.version)
        except MemberChanged:
            if heard is None:
                raise
            answer = await self._annotate_changed(pod, given, notes)
        self.store.learn_written(answer)
        log.info("notice", pod=f"{pod.namespace}/{pod.name}", cause=given.cause, until=notice.stamp(given.deadline))

    async def _annotate_changed(self, pod: PodFacts, given: Notice, notes: dict[str, str | None]) -> Object:
        """Of a pod that has heard and has changed since, perhaps because its process has left: it is not asked twice."""
        there = facts.read(await self.member.get(PODS, pod.namespace, pod.name))
        if there.uid != pod.uid or there.notice is not None:
            raise MemberChanged("another pod, or one with a notice", status=409)
        sent = replace(given, restarts=planning.restarts_before(there, given))
        return await self.member.annotate_pod(
            there, notes | {notice.NOTICE: sent.written(pod.uid)}, version=there.version
        )

    async def _suspend(self, job: MemberJob) -> None:
        try:
            await job.suspend(self.member)
        except MemberMissing:
            log.info("job is gone", job=job.name)
        except (MemberAway, MemberChanged, MemberRefused) as e:
            log.warning("job not suspended", job=job.name, error=str(e))
            return
        job.note_stopped(self.clock())

    async def _write(self, job: MemberJob) -> bool:
        """Whether the job's record stands."""
        try:
            await job.write(self.member)
        except (MemberMissing, MemberChanged):
            return False  # the job is gone, or another one has its name
        except MemberRefused as e:
            log.warning("record refused", job=job.name, error=str(e))
            return False
        return job.kind is not None

    def _key_of(self, job: MemberJob, manifest: Object) -> str:
        pods = {entry.uid for record in job.records.values() for entry in record.pods.values()}
        for key in self.store.jobs():
            if any(pod.uid in pods and pod.namespace == job.namespace for pod in self.store.pods_of(key)):
                return key
        return jobs.key_of(manifest)
