"""The logs of pods: the output of a real process, or the generated lines of a simulated run."""

from pathlib import Path

from fleet.kube.resources import PODS
from simulator.machinery.clock import parse_stamp
from simulator.machinery.controller import Cluster
from simulator.machinery.objects import Object, annotations_of, is_finished, name_of, phase_of, restarts_of
from simulator.node import initialisation, lifecycle, trainlog
from simulator.node.kubelet import Kubelet
from simulator.node.runtime.processes import log_path

LARGEST = 256 << 20
"""Of one reading of a process's output: twice what evicts its pod."""


SETTLED_S = 0.2
"""What is younger may still get a line in front of it."""


class Logs:
    def __init__(self, cluster: Cluster, kubelet: Kubelet, home: Path) -> None:
        self._pods = cluster.informer(PODS)
        self._clock = cluster.clock
        self._kubelet = kubelet
        self._home = home

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """The log from byte ``offset`` on, and whether it is complete. None while the pod has not started."""
        key = f"{namespace}/{name}"
        pod = self._pods.get(key)
        if pod is None or (phase_of(pod) == "Pending" and self._kubelet.started_at(key) is None):
            return None
        over = is_finished(pod)
        if lifecycle.behaviour(pod).process:
            return self._of_process(pod, offset, restart=restarts_of(pod)), over
        return self._lines(pod, *self._span(key, pod))[offset:], over

    def former(self, namespace: str, name: str) -> bytes | None:
        """The log of the run before the last restart; None where there was none."""
        pod = self._pods.get(f"{namespace}/{name}")
        if pod is None or not restarts_of(pod):
            return None
        if lifecycle.behaviour(pod).process:
            return self._of_process(pod, 0, restart=restarts_of(pod) - 1)
        statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
        ended = (statuses[0].get("lastState") or {}).get("terminated")
        return None if ended is None else self._lines(pod, *self._whole_span(pod, ended))

    def of_init(
        self, namespace: str, name: str, container: str, offset: int, *, former: bool
    ) -> tuple[bytes, bool] | None:
        """As `read` and `former`, of an init container. Of one that only was pretended it is empty."""
        pod = self._pods.get(f"{namespace}/{name}")
        restarts = None if pod is None else initialisation.restarts_of(pod, container)
        if pod is None or restarts is None or (former and not restarts):
            return None
        text = self._of_process(pod, offset, restart=restarts - former, init=container)
        return text, former or initialisation.is_over(pod, container)

    def _of_process(self, pod: Object, offset: int, *, restart: int, init: str = "") -> bytes:
        path = log_path(self._home, pod, restart, init)
        if not path.exists():
            return b""
        with path.open("rb") as log:
            log.seek(offset)
            return log.read(LARGEST)

    def _lines(self, pod: Object, started: float, until: float) -> bytes:
        step_s = self._clock.real(trainlog.STEP_S)
        training = self._kubelet.trainings.of_log(pod) if lifecycle.STEP in annotations_of(pod) else None
        if training is not None:
            until = min(until, self._clock.now() - SETTLED_S)
            lines = trainlog.of_training(training, name_of(pod), started=started, until=until, step_real_s=step_s / 5)
            return "".join(f"{line}\n" for line in lines).encode()
        lines = trainlog.lines(name_of(pod), started=started, until=until, step_real_s=step_s)
        return "".join(f"{line}\n" for line in lines).encode()

    def _span(self, key: str, pod: Object) -> tuple[float, float]:
        """When the container started, and when it ended (or the current time). Exact while the simulator knows the time."""
        statuses = (pod.get("status") or {}).get("containerStatuses") or []
        state: Object = (statuses[0].get("state") or {}) if statuses else {}
        if "waiting" in state:
            state = statuses[0].get("lastState") or {}
        exact, now = self._kubelet.started_at(key), self._clock.now()
        if "terminated" in state:
            return self._whole_span(pod, state["terminated"])
        if exact is not None or "running" not in state:
            return exact or now, now
        return parse_stamp(state["running"]["startedAt"]), now

    def _whole_span(self, pod: Object, ended: Object) -> tuple[float, float]:
        """The span of an ended run. Timestamps have whole seconds, so a run of the expected length gets exactly that length."""
        started, finished = parse_stamp(ended["startedAt"]), parse_stamp(ended["finishedAt"])
        meant_s = lifecycle.behaviour(pod).duration_s
        due = started + self._clock.real(meant_s or 0.0)
        return started, due if finished <= due <= finished + 1 else finished
