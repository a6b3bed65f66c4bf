"""The kubelets of all nodes: starts bound pods, ends them when their time or process is over, restarts and removes them.

The start of a run is exact in memory, and in whole seconds in the pod's status, from which a restarted simulator continues. A
real process does not survive the simulator, and counts as killed. While a node is off, its kubelet does nothing; when it is
back, the pods that ran there have ended.
"""

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from fleet.kube.resources import NODES, PODS
from fleet.member.client import Object
from fleet.member.errors import MemberMissing
from simulator.machinery.clock import parse_stamp
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import (
    is_finished,
    is_leaving,
    key_of,
    name_of,
    namespace_of,
    node_of,
    owner_of,
    phase_of,
    restarts_of,
    split_key,
    uid_of,
)
from simulator.node import lifecycle
from simulator.node.initialisation import Initialisation
from simulator.node.nodes import address, is_off
from simulator.node.runtime.appetite import Bounds, Look
from simulator.node.runtime.isolation import Isolation
from simulator.node.runtime.processes import Process, sweep
from simulator.node.runtime.sandbox import Sandboxes
from simulator.node.trainings import SAVED_STEP, Trainings, pace_of

NEVER = float("inf")
NODE_LOST = "NodeLost"
NAMES = "names"
"""A queue key for updating the /etc/hosts of running pods. It is no pod's key, because these contain a slash."""


@dataclass
class Run:
    """One pod on its node."""

    pod: Object
    behaviour: lifecycle.Behaviour
    init: Initialisation
    start_at: float | None = None
    """When the (next) start is due; None while it runs."""
    started: float = 0.0
    restart: int = 0
    process: Process | None = None
    code: int | None = None
    """Set when the pod was asked to stop, or its process ended."""
    reason: str = ""
    message: str = ""
    """The termination message of the container."""
    last: Object | None = None
    unsent: Object | None = None
    """A status that is not written to the API server yet."""
    kill_at: float | None = None
    look: Look | None = None
    """At what its process uses up; None for a pod that is pretended."""
    evicted: str = ""
    """Why it was evicted. It does not start again."""

    @property
    def has_begun(self) -> bool:
        """Whether its own containers run, and not only one that initialises it."""
        return self.start_at is None and self.init.current is None


class Kubelet(Controller):
    name = "kubelet"
    workers = 2

    def __init__(
        self,
        cluster: Cluster,
        home: Path,
        *,
        start_delay_s: float,
        subnet: int,
        api_host: str,
        isolation: Isolation | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(cluster)
        self._home = home
        self._start_delay_s = start_delay_s
        self._pods = cluster.informer(PODS)
        self._nodes = cluster.informer(NODES)
        self._runs: dict[str, Run] = {}
        self._failed: dict[str, int] = {}
        self.trainings = Trainings(home, cluster.clock)
        self._bounds = bounds = bounds or Bounds()
        isolation = isolation or Isolation.of(os.environ, home)
        self._sandboxes = Sandboxes(cluster, home, isolation, subnet=subnet, api_host=api_host, bounds=bounds)
        self._sandboxes.services.listen(lambda _kind, _service: self.queue.add(NAMES))
        self._pods.listen(self._on_pod)
        self._nodes.listen(self._on_node)

    def stop(self) -> None:
        super().stop()
        for run in list(self._runs.values()):
            if run.process:
                run.process.kill()
        self._sandboxes.close()

    def crash(self, key: str, code: int = 1) -> bool:
        """Ends the pod's containers at once with this exit code. Returns False if it does not run."""
        run = self._runs.get(key)
        if run is None or run.start_at is not None:
            return False
        run.code, run.reason = code, "Error"
        if run.process:
            run.process.kill()
        self.queue.add(key)
        return True

    def started_at(self, key: str) -> float | None:
        """The exact time at which the pod's containers started. None if they do not run."""
        run = self._runs.get(key)
        return run.started if run is not None and run.has_begun else None

    def process(self, key: str) -> Process | None:
        """The process of a running pod. None for a pod that is pretended, or does not run."""
        run = self._runs.get(key)
        process = run.process if run is not None and run.has_begun else None
        return process if process is not None and not process.ended() else None

    def reconcile(self, key: str) -> float | None:
        if key == NAMES:
            self._sandboxes.refresh()
            return None
        pod = self._pods.get(key)
        run = self._runs.get(key)
        if run is not None and (pod is None or uid_of(pod) != uid_of(run.pod)):
            self._cleanup(key, run)
            run = None
        if pod is None or not node_of(pod):
            return None
        node = self._nodes.get(f"/{node_of(pod)}")
        if node is None or is_off(node):
            self._lose(key, pod, run)
            return None
        if is_leaving(pod):
            return self._remove(key, pod, run)
        if is_finished(pod):
            return None
        if run is None:
            return self._adopt(key, pod)
        run.pod = pod
        return self._step(key, run)

    def _on_pod(self, _kind: str, pod: Object) -> None:
        if node_of(pod):
            self.queue.add(key_of(pod))

    def _on_node(self, _kind: str, node: Object) -> None:
        for pod in self._pods.all():
            if node_of(pod) == name_of(node) and not is_finished(pod):
                self.queue.add(key_of(pod))

    def _adopt(self, key: str, pod: Object) -> float | None:
        """Starts to manage a pod, which is new or has been running since before the simulator was restarted."""
        now = self.clock.now()
        try:
            behaviour = lifecycle.behaviour(pod)
            pace_of(pod, self.clock)
        except ValueError as e:
            self._send(pod, lifecycle.unstartable(pod, now=now, words=str(e)))
            return None
        run = Run(pod, behaviour, Initialisation(pod), restart=restarts_of(pod))
        state = next((c.get("state") or {} for c in (pod.get("status") or {}).get("containerStatuses") or []), {})
        if phase_of(pod) == "Running" and "running" in state:
            run.started = parse_stamp(state["running"]["startedAt"])
            if behaviour.process:
                run.code, run.reason = lifecycle.KILLED, "Error"
            else:
                self.trainings.join(pod, now)
        else:
            run.start_at = now + self.clock.real(self._start_delay_s)
            run.restart += "waiting" in state and phase_of(pod) == "Running"
        self._runs[key] = run
        self._sandboxes.address(pod)
        self.queue.add(NAMES)
        return self._step(key, run)

    def _step(self, key: str, run: Run) -> float | None:
        """Advances one pod. A status that could not be written before is written first."""
        self._flush(run)
        now = self.clock.now()
        if run.start_at is not None:
            if run.start_at > now:
                return None if run.start_at == NEVER else run.start_at - now
            self._begin(key, run, now)
            if run.start_at is not None:  # it cannot start now, and is tried again
                return run.start_at - now
        if run.start_at is None and run.code is None and (ordered := lifecycle.ordered_end(run.pod)):
            run.code, run.message = ordered
            if run.process:
                run.process.kill()
        if run.start_at is None and (run.code is not None or self._is_over(run, now)):
            if run.process and not run.process.ended():
                return None
            return self._end(key, run, now)
        if run.look is not None:
            return self._bound(run, run.look)
        due = [self._ends(run), self.trainings.checkpoint(run.pod, now)]
        return min((max(at - self.clock.now(), 0.0) for at in due if at is not None), default=None)

    def _bound(self, run: Run, look: Look) -> float | None:
        """Evicts a pod whose process uses up too much of this machine. Returns when to look again."""
        if wait_s := look.due_in():
            return wait_s
        if words := look.warning():
            self._sandboxes.warn(run.pod, "TooManyProcesses", words)
        run.evicted = look.fault()
        if not run.evicted:
            return look.due_in()
        run.code = lifecycle.KILLED
        if run.process:
            run.process.kill()
        return None

    def _ends(self, run: Run) -> float | None:
        if (complete := self.trainings.ends_at(run.pod)) is not None:
            return complete
        if run.behaviour.process or run.behaviour.duration_s is None:
            return None
        return run.started + self.clock.real(run.behaviour.duration_s)

    def _is_over(self, run: Run, now: float) -> bool:
        ends = self._ends(run)
        return ends is not None and ends <= now

    def _begin(self, key: str, run: Run, now: float) -> None:
        run.started, run.code, run.reason = now, None, ""
        run.start_at = None  # last: an end that is asked for from now on is kept
        init = self._next_init(run, now)
        where = self._where(run.pod)
        if run.behaviour.process:
            addressed = {**run.pod, "status": {**(run.pod.get("status") or {}), **where.of_status}}
            restart = run.init.restart if init else run.restart
            try:
                run.process = self._sandboxes.launch(addressed, restart=restart, init=init)
            except (LookupError, ValueError) as e:
                run.start_at = now + self.clock.real(lifecycle.BACKOFF_FIRST_S)
                self._send(run.pod, self._unstartable(run, now, str(e)))
                return
            run.look = Look(run.process, self._bounds)
            threading.Thread(target=self._await_process, args=(key, run, run.process), daemon=True).start()
        else:
            self._requeue(self.trainings.join(run.pod, now))
        if init:
            run.init.begin(now)
            run.unsent = lifecycle.initialising(run.pod, now=now, where=where, init=run.init)
        else:
            run.unsent = lifecycle.running(
                run.pod, now=now, where=where, restart=run.restart, last=run.last, extra=run.init.statuses
            )
        self._flush(run)

    def _where(self, pod: Object) -> lifecycle.Addresses:
        return lifecycle.Addresses(self._sandboxes.address(pod), address(node_of(pod)))

    def _next_init(self, run: Run, now: float) -> Object | None:
        """The init container to run now. Those that cannot run here end at once, as all of a pretended pod do."""
        ended = lifecycle.ended_state(code=0, reason="", started=now, now=now)
        if not run.behaviour.process:
            run.init.end_all(ended)
        while (init := run.init.current) is not None and not self._sandboxes.has_programs(run.pod, init):
            run.init.end(ended)
        return init

    def _unstartable(self, run: Run, now: float, words: str) -> Object:
        if run.init.current is None:
            return lifecycle.unstartable(run.pod, now=now, words=words)
        run.init.refuse(words)
        return lifecycle.initialising(run.pod, now=now, where=self._where(run.pod), init=run.init)

    def _requeue(self, keys: list[str]) -> None:
        """Pods that train with one that has come or left end at another time."""
        for key in keys:
            self.queue.add(key)

    def _await_process(self, key: str, run: Run, process: Process) -> None:
        code = process.wait()
        if run.process is process and run.code is None:
            run.code = code
        self.queue.add(key)

    def _end(self, key: str, run: Run, now: float) -> float | None:
        if run.process and not run.message:
            run.message = run.process.message()
        if run.init.current is not None and run.code is not None:
            return self._end_init(run, run.code, now)
        code = run.code
        if code is None:
            code = run.behaviour.code_of_run(self._failed.get(self._exit_count_key(run.pod), 0))
        if code:
            self._failed[self._exit_count_key(run.pod)] = self._failed.get(self._exit_count_key(run.pod), 0) + 1
        ended = lifecycle.ended_state(code=code, reason=run.reason, message=run.message, started=run.started, now=now)
        if run.reason == NODE_LOST:
            run.init.again()
        run.process, run.look, run.message = None, None, ""
        self._requeue(self.trainings.leave(run.pod, now, saved=False))
        if run.evicted or not lifecycle.restarts(run.pod["spec"].get("restartPolicy") or "Always", code):
            run.unsent = lifecycle.finished(run.pod, now=now, restart=run.restart, ended=ended, evicted=run.evicted)
            run.code, run.start_at = None, NEVER
            self._flush(run)
            return None
        ran_s = (now - run.started) / self.clock.real(1.0)
        wait_s = self.clock.real(lifecycle.backoff_s(run.restart, ran_s))
        if wait_s:
            run.unsent = lifecycle.backing_off(run.pod, now=now, restart=run.restart, ended=ended)
        run.restart, run.start_at, run.last, run.code = run.restart + 1, now + wait_s, ended, None
        self._flush(run)
        return wait_s

    def _end_init(self, run: Run, code: int, now: float) -> float | None:
        """An init container has ended: the next may begin, or it again after a while, or the pod has failed."""
        ended = lifecycle.ended_state(code=code, reason=run.reason, message=run.message, started=run.started, now=now)
        run.process, run.look, run.code, run.message, wait_s = None, None, None, "", 0.0
        run.init.end(ended)
        failed = code != 0 and (bool(run.evicted) or run.pod["spec"].get("restartPolicy") == "Never")
        if code and not failed:
            ran_s = (now - run.started) / self.clock.real(1.0)
            wait_s = self.clock.real(lifecycle.backoff_s(run.init.restart, ran_s))
            run.init.back_off()
        run.start_at = NEVER if failed else now + wait_s
        run.unsent = lifecycle.initialising(run.pod, now=now, where=self._where(run.pod), init=run.init, failed=failed)
        if run.evicted:
            run.unsent |= {"reason": lifecycle.EVICTED, "message": run.evicted}
        if code or run.init.current is not None:
            self._flush(run)
        return None if failed else wait_s

    def _exit_count_key(self, pod: Object) -> str:
        """The key by which ``exit-code-times`` counts: the pod's name and its owner, so that recreated pods count together."""
        owner = owner_of(pod)
        return f"{key_of(pod)}/{owner['uid'] if owner else uid_of(pod)}"

    def _lose(self, key: str, pod: Object, run: Run | None) -> None:
        """Handles a pod on a node that is off: nothing is reported, and the pod has ended when the node is back."""
        if run is None and phase_of(pod) == "Running" and not is_leaving(pod):
            self._adopt_lost(key, pod)
        elif run is not None and run.start_at is None:
            run.code, run.reason = lifecycle.KILLED, NODE_LOST
            self._requeue(self.trainings.leave(run.pod, self.clock.now(), saved=False))
            if run.process:
                run.process.kill()

    def _adopt_lost(self, key: str, pod: Object) -> None:
        self._runs[key] = Run(
            pod,
            lifecycle.behaviour(pod),
            Initialisation(pod),
            started=self.clock.now(),
            restart=restarts_of(pod),
            code=lifecycle.KILLED,
            reason=NODE_LOST,
        )

    def _remove(self, key: str, pod: Object, run: Run | None) -> float | None:
        """Ends a pod that is being deleted: SIGTERM and grace period for a real process, then removal from the API server."""
        if run is not None and run.process is not None and not run.process.ended():
            now = self.clock.now()
            over_at = now + float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            if run.kill_at is None:
                run.kill_at, run.code = over_at, lifecycle.KILLED
                run.process.terminate()
            run.kill_at = min(run.kill_at, over_at)  # a later deletion may shorten the grace period
            if run.kill_at > now:
                return run.kill_at - now
            run.process.kill()
            return 0.2
        if run is not None and (wait_s := self._save(pod, run)):
            return wait_s
        with contextlib.suppress(MemberMissing):
            self.client.delete(PODS.path(*split_key(key)), uid=uid_of(pod), grace_s=0)
        return None

    def _save(self, pod: Object, run: Run) -> float | None:
        """A pod that trains saves on SIGTERM, if its grace allows, and says which step. Returns the (real) seconds left."""
        now = self.clock.now()
        step = self.trainings.step(pod, now)
        if step is None:
            return None
        saving_s, grace_s = self.trainings.saving_s(pod), float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        if run.kill_at is None:
            run.kill_at = now + min(saving_s, grace_s)
        if run.kill_at > now:
            return run.kill_at - now
        if saving_s <= grace_s:
            path = PODS.path(namespace_of(pod), name_of(pod))
            note = {"uid": uid_of(pod), "annotations": {SAVED_STEP: str(step)}}
            with contextlib.suppress(MemberMissing):
                self.client.merge_patch(path, {"metadata": note})
        self._requeue(self.trainings.leave(pod, now, saved=saving_s <= grace_s))
        return None

    def _cleanup(self, key: str, run: Run) -> None:
        self._requeue(self.trainings.leave(run.pod, self.clock.now(), saved=False))
        if run.process:
            run.process.kill()
        if run.behaviour.process:
            sweep(self._home, uid_of(run.pod))
        self._sandboxes.forget(uid_of(run.pod))
        del self._runs[key]

    def _flush(self, run: Run) -> None:
        if run.unsent is not None:
            self._send(run.pod, run.unsent)
            run.unsent = None

    def _send(self, pod: Object, status: Object) -> None:
        path = PODS.path(namespace_of(pod), name_of(pod), "status")
        self._pods.learn(self.client.merge_patch(path, {"metadata": {"uid": uid_of(pod)}, "status": status}))
