"""The init containers of one pod: which is to run next, and how a kubelet reports them. No I/O.

They run one after another; each must end with 0 before the next begins, and the last before the pod's own containers do. One
that fails is started again after a while, unless the pod is never restarted: then the pod has failed. They do not run again
when the pod's own container does, except after the loss of the node. Sidecars (``restartPolicy: Always``) are neither run nor
reported.
"""

import copy

from simulator.machinery.clock import stamp
from simulator.machinery.objects import Object

WAITING = "PodInitializing"


class Initialisation:
    def __init__(self, pod: Object) -> None:
        """As the pod's status says: a container that ran when the simulator ended is started again."""
        self._containers = [each for each in _init_containers(pod) if each.get("restartPolicy") != "Always"]
        before = {each["name"]: each for each in (pod.get("status") or {}).get("initContainerStatuses") or []}
        self._statuses = [copy.deepcopy(before.get(each["name"])) or _waiting(each) for each in self._containers]
        if (status := self._status) is not None and "running" in status["state"]:
            status["restartCount"] += 1

    @property
    def current(self) -> Object | None:
        """The container that runs, or is the next to. None when all have ended."""
        return next((c for c, s in zip(self._containers, self._statuses, strict=True) if not _is_done(s)), None)

    @property
    def restart(self) -> int:
        """Of the current one."""
        return int(self._status["restartCount"]) if self._status else 0

    @property
    def statuses(self) -> Object:
        """The part of the pod's status about them; nothing for a pod without any."""
        return {"initContainerStatuses": copy.deepcopy(self._statuses)} if self._statuses else {}

    def begin(self, now: float) -> None:
        self._set({"running": {"startedAt": stamp(now)}})

    def refuse(self, message: str) -> None:
        """The current one cannot be started."""
        self._set({"waiting": {"reason": "CreateContainerConfigError", "message": message}})

    def end(self, state: Object) -> None:
        self._set(state)

    def end_all(self, state: Object) -> None:
        """For a pod that is pretended."""
        while self.current is not None:
            self.end(state)

    def back_off(self) -> None:
        """The current one has failed, and waits until it is started again."""
        if (status := self._status) is not None:
            message = f"back-off restarting failed container, restart {status['restartCount'] + 1}"
            status["lastState"], status["restartCount"] = status["state"], status["restartCount"] + 1
            status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}

    def again(self) -> None:
        """The node was lost: all of them run again."""
        for status in self._statuses:
            status.update(state={"waiting": {"reason": WAITING}}, ready=False, restartCount=status["restartCount"] + 1)

    @property
    def _status(self) -> Object | None:
        return next((each for each in self._statuses if not _is_done(each)), None)

    def _set(self, state: Object) -> None:
        if (status := self._status) is not None:
            status["state"], status["ready"] = state, (state.get("terminated") or {}).get("exitCode") == 0
            status["started"] = "running" in state


def missing_of(status: Object) -> list[str]:
    """The init containers that have not ended, by this (part of a) status."""
    return [each["name"] for each in status.get("initContainerStatuses") or [] if not _is_done(each)]


def restarts_of(pod: Object, name: str) -> int | None:
    """How often an init container was started again. None if the pod has no such container, or it has not begun."""
    status = _of(pod, name)
    return (
        None
        if status is None or (status["state"].get("waiting") or {}).get("reason") == WAITING
        else int(status["restartCount"])
    )


def is_over(pod: Object, name: str) -> bool:
    """Whether an init container prints nothing more, until it is started again."""
    status = _of(pod, name)
    return status is None or "running" not in status["state"]


def _of(pod: Object, name: str) -> Object | None:
    statuses: list[Object] = (pod.get("status") or {}).get("initContainerStatuses") or []
    return next((each for each in statuses if each["name"] == name), None)


def _init_containers(pod: Object) -> list[Object]:
    containers: list[Object] = pod["spec"].get("initContainers") or []
    return containers


def _is_done(status: Object) -> bool:
    return bool((status["state"].get("terminated") or {}).get("exitCode", 1) == 0)


def _waiting(container: Object) -> Object:
    state = {"waiting": {"reason": WAITING}}
    about = {"name": container["name"], "image": container.get("image", ""), "imageID": ""}
    return {**about, "ready": False, "started": False, "restartCount": 0, "state": state, "lastState": {}}
