"""What `kubectl logs` of a pod shows: the output of a real process, or the made-up lines of a simulated run."""

from pathlib import Path

from fleet.kube.resources import PODS

from . import lifecycle, trainlog
from .clock import parse_stamp
from .controller import Cluster
from .kubelet import Kubelet
from .objects import Object, is_finished, name_of, phase_of, restarts_of
from .processes import log_path


class Logs:
    def __init__(self, cluster: Cluster, kubelet: Kubelet, home: Path) -> None:
        self._pods = cluster.informer(PODS)
        self._clock = cluster.clock
        self._kubelet = kubelet
        self._home = home

    def read(self, namespace: str, name: str, *, start: int = 0, previous: bool = False) -> tuple[bytes, bool]:
        """The log from byte ``start``, and whether more can still come. LookupError: there is no such log (yet)."""
        key = f"{namespace}/{name}"
        pod = self._pods.get(key)
        if pod is None or (phase_of(pod) == "Pending" and self._kubelet.started_at(key) is None):
            raise LookupError(f"pod {name} has no log yet")
        if lifecycle.behaviour(pod).process:
            return self._of_process(pod, start, previous)
        started, until = self._span(key, pod, previous)
        step_s = self._clock.real(trainlog.STEP_S)
        lines = trainlog.lines(name_of(pod), started=started, until=until, step_real_s=step_s)
        text = "".join(f"{line.text}\n" for line in lines).encode()
        return text[start:], not (previous or is_finished(pod))

    def _of_process(self, pod: Object, start: int, previous: bool) -> tuple[bytes, bool]:
        restart = restarts_of(pod) - (1 if previous else 0)
        path = log_path(self._home, pod, restart)
        more = not (previous or is_finished(pod))
        if not path.exists():
            if previous:
                raise LookupError("there is no previous container")
            return b"", more
        with path.open("rb") as log:
            log.seek(start)
            return log.read(), more

    def _span(self, key: str, pod: Object, previous: bool) -> tuple[float, float]:
        """From when to when the (last or previous) container ran; the exact moments while the simulator knows them."""
        states = [c for c in (pod.get("status") or {}).get("containerStatuses") or []]
        main: Object = states[0] if states else {}
        ended = (main.get("lastState") if previous else main.get("state")) or {}
        if "terminated" in ended:
            return parse_stamp(ended["terminated"]["startedAt"]), parse_stamp(ended["terminated"]["finishedAt"])
        if previous:
            raise LookupError("there is no previous container")
        exact = self._kubelet.started_at(key)
        written = (ended.get("running") or {}).get("startedAt")
        now = self._clock.now()
        started = exact if exact is not None else (parse_stamp(written) if written else now)
        return started, now
