"""Volcano Jobs: tasks of pods in one PodGroup, created when the group is enqueued, and policies for events. No I/O."""

import copy

from fleet.core import units
from fleet.kube.resources import PODS, VOLCANO_JOBS, VOLCANO_POD_GROUPS, Resource
from simulator.machinery.clock import stamp
from simulator.machinery.objects import Object, annotations_of, name_of, phase_of, uid_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult, surplus
from simulator.scheduler.packing import TASK_AFFINITY, VOLCANO, VOLCANO_GROUP, VOLCANO_ROLE

OVER = ("Completed", "Failed", "Aborted", "Terminated")
PREFIX = "volcano.sh/"
_ACTIONS = {
    "RestartJob": "Restarting",
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}
_ENDS = {"Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed", "Restarting": "Pending"}


class Volcano(Operator):
    resource = VOLCANO_JOBS

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        status = copy.deepcopy(job.get("status") or {})
        phase = (status.get("state") or {}).get("phase") or "Pending"
        live = [pod for pod in dependents.pods if phase_of(pod) in ("Pending", "Running")]
        if phase in OVER:
            return ReconcileResult(status, remove=live)
        if dependents.aborted and phase not in _ENDS:
            return self._enter(status, "Aborting", now, remove=dependents.pods)
        if phase in _ENDS:
            ending = dependents.pods if phase in ("Restarting", "Aborting") else live
            return self._enter(status, phase, now, remove=ending) if ending else self._enter(status, _ENDS[phase], now)
        return self._run(job, dependents, status, now)

    def _run(self, job: Object, dependents: Dependents, status: Object, now: float) -> ReconcileResult:
        pods = self._pods(job)
        group = self._group(job, pods)
        is_enqueued = ((dependents.group or {}).get("status") or {}).get("phase") not in (None, "", "Pending")
        names = [name_of(pod) for _, pod in pods]
        phases = dependents.phases(names)
        counted = {"pending": "Pending", "running": "Running", "succeeded": "Succeeded", "failed": "Failed"}
        status |= {field: phases.count(phase) for field, phase in counted.items()}
        status["minAvailable"] = group[1]["spec"]["minMember"]
        step = self._judge(job, status, dict(zip(names, phases, strict=True)), now)
        if status["state"]["phase"] in ("Pending", "Running"):
            step.make = [group, *(((PODS, pod) for _, pod in pods) if is_enqueued else ())]
            step.remove = surplus(dependents, names)
            least, made = group[1]["spec"]["minMember"], dependents.group
            if made is not None and (made.get("spec") or {}).get("minMember") != least:
                step.resize = [(VOLCANO_POD_GROUPS, made, {"minMember": least})]
        return step

    def _judge(self, job: Object, status: Object, phases: dict[str, str], now: float) -> ReconcileResult:
        """Carries out the action of a matching policy. Without one, the job ends when all pods have ended."""
        action = self._action(job, phases)
        retries = int(status.get("retryCount") or 0)
        limit = job["spec"].get("maxRetry")
        if action == "RestartJob":
            if retries >= (3 if limit is None else int(limit)):
                return self._enter(status, "Failed", now)
            status["retryCount"] = retries + 1
        if action:
            return self._enter(status, _ACTIONS[action], now)
        all_ended = bool(phases) and all(phase in ("Succeeded", "Failed") for phase in phases.values())
        if all_ended:
            needed = job["spec"].get("minSuccess") or status["minAvailable"]
            return self._enter(status, "Completed" if status["succeeded"] >= int(needed) else "Failed", now)
        started = status["running"] + status["succeeded"] >= status["minAvailable"]
        return self._enter(status, "Running" if started else "Pending", now)

    def _action(self, job: Object, phases: dict[str, str]) -> str:
        for number, task in enumerate(job["spec"]["tasks"]):
            mine = [phases[self._name(job, task, number, index)] for index in range(_replicas(task))]
            events = {"PodFailed"} if "Failed" in mine else set()
            if mine and all(phase == "Succeeded" for phase in mine):
                events.add("TaskCompleted")
            for policy in [*(task.get("policies") or []), *(job["spec"].get("policies") or [])]:
                selected = {policy.get("event"), *(policy.get("events") or [])}
                if policy.get("action") in _ACTIONS and (events & selected or (events and "*" in selected)):
                    return str(policy["action"])
        return ""

    def _enter(self, status: Object, phase: str, now: float, remove: list[Object] | None = None) -> ReconcileResult:
        if (status.get("state") or {}).get("phase") != phase:
            status["state"] = {"phase": phase, "lastTransitionTime": stamp(now)}
        return ReconcileResult(status, remove=remove or [])

    def _group(self, job: Object, pods: list[tuple[str, Object]]) -> tuple[Resource, Object]:
        spec = job["spec"]
        least = int(spec.get("minAvailable") or len(pods))
        total = units.plus(units.pod_request(pod["spec"]) for _, pod in pods[:least])
        quantities = {name: f"{n}m" if name == "cpu" else str(n) for name, n in total.items() if name != "pods"}
        meta = self.owned(job, f"{name_of(job)}-{uid_of(job)}")
        annotations = annotations_of(job)
        meta["annotations"] = {TASK_AFFINITY: annotations[TASK_AFFINITY]} if TASK_AFFINITY in annotations else {}
        body = {"apiVersion": VOLCANO_POD_GROUPS.api_version, "kind": VOLCANO_POD_GROUPS.kind, "metadata": meta}
        queue = spec.get("queue") or "default"
        return VOLCANO_POD_GROUPS, {**body, "spec": {"minMember": least, "minResources": quantities, "queue": queue}}

    def _pods(self, job: Object) -> list[tuple[str, Object]]:
        tasks = list(enumerate(job["spec"]["tasks"]))
        hosts = {_task(task, n): [self._name(job, task, n, i) for i in range(_replicas(task))] for n, task in tasks}
        return [(_task(t, n), self._pod(job, t, n, i, hosts)) for n, t in tasks for i in range(_replicas(t))]

    def _pod(self, job: Object, task: Object, number: int, index: int, hosts: dict[str, list[str]]) -> Object:
        role, spec = _task(task, number), job["spec"]
        marks = {f"{PREFIX}job-name": name_of(job), f"{PREFIX}queue-name": str(spec.get("queue") or "default")}
        marks[VOLCANO_ROLE] = role
        labels = {**marks, f"{PREFIX}task-index": str(index)}
        restart = str(task["template"]["spec"].get("restartPolicy") or "OnFailure")
        pod = self.pod(job, self._name(job, task, number, index), task["template"], labels, restart)
        pod["metadata"]["annotations"] |= {**marks, VOLCANO_GROUP: f"{name_of(job)}-{uid_of(job)}"}
        pod["spec"]["schedulerName"] = spec.get("schedulerName") or VOLCANO
        env = {"VC_TASK_INDEX": str(index)}
        for name, known in hosts.items():
            word = name.upper().replace("-", "_")
            env |= {
                f"VC_{word}_HOSTS": ",".join(f"{host}.{name_of(job)}" for host in known),
                f"VC_{word}_NUM": str(len(known)),
            }
        for container in pod["spec"]["containers"]:
            variables = [{"name": key, "value": value} for key, value in env.items()]
            container["env"] = [*(container.get("env") or []), *variables]
        return pod

    def _name(self, job: Object, task: Object, number: int, index: int) -> str:
        return f"{name_of(job)}-{_task(task, number)}-{index}"


def _task(task: Object, number: int) -> str:
    return str(task.get("name") or f"default{number}")


def _replicas(task: Object) -> int:
    return 1 if task.get("replicas") is None else int(task["replicas"])
