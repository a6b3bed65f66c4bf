"""TrainingJobs (et-operator) and ElasticJobs (DLRover): workers come, go and are replaced under a job that goes on. Pure."""

import copy

from fleet.kube.resources import ELASTIC_JOBS, PODS, SERVICES, TRAINING_JOBS, Resource

from . import conditions
from .objects import Object, annotations_of, exit_code, is_leaving, labels_of, name_of, phase_of
from .trades import Found, Step, Trade, at, ended, surplus

SUSPEND = ("scheduling.x-k8s.io/suspend", "job-supervisor.kube-ai.io/job-suspended")
KILLED = (137, 143)
"""Exit codes of pods that others ended: they do not use up a budget of restarts."""


class Horovod(Trade):
    """A launcher once all workers are ready; the job is over with the launcher. There is no way back from suspension."""

    resource = TRAINING_JOBS

    def step(self, job: Object, found: Found, now: float) -> Step:
        status = copy.deepcopy(job.get("status") or {})
        phase = status.get("phase") or "Created"
        if phase in ("Succeeded", "Failed"):
            return Step(status, remove=ended(job, found))
        if phase == "Suspended" or any(annotations_of(job).get(note) == "true" for note in SUSPEND):
            return Step({**status, "phase": "Suspended"}, remove=found.pods)
        if phase == "Restarting" and found.pods:
            return Step(status, remove=found.pods)
        at(status, "startTime", now)
        return self._run(job, found, status, now)

    def _run(self, job: Object, found: Found, status: Object, now: float) -> Step:
        roles = {name.lower(): spec for name, spec in job["spec"]["etReplicaSpecs"].items()}
        workers = [f"{name_of(job)}-worker-{i}" for i in range(int(roles["worker"].get("replicas") or 1))]
        launcher = f"{name_of(job)}-launcher"
        step = Step(status, remove=surplus(found, [*workers, launcher]))
        for index, name in enumerate(workers):
            self._make(step, job, name, "worker", index, roles["worker"])
        phases = found.phases(workers)
        step.remove += [pod for pod in found.pods if name_of(pod) in workers and phase_of(pod) == "Failed"]
        status |= {"targetWorkers": len(workers), "currentWorkers": phases.count("Running")}
        self._say(status, "WorkersCreated", "all workers are made", now)
        [chief] = found.phases([launcher])
        if chief or all(phase == "Running" for phase in phases):
            self._say(status, "WorkersReady", "all workers are ready", now)
            self._make(step, job, launcher, "launcher", 0, roles["launcher"])
        self._judge(job, status, chief, phases, now)
        if status["phase"] == "Restarting":
            step.make, step.remove = [], found.pods
        return step

    def _judge(self, job: Object, status: Object, chief: str, phases: list[str], now: float) -> None:
        restarts, spec = int(status.get("restartCount") or 0), job["spec"]
        limit = spec.get("backoffLimit")
        if (
            chief == "Failed"
            and spec.get("restartPolicy") == "OnFailure"
            and restarts < (6 if limit is None else limit)
        ):
            status |= {"phase": "Restarting", "restartCount": restarts + 1}
        elif chief in ("Succeeded", "Failed"):
            status["phase"] = chief
            at(status, "completionTime", now)
        elif chief == "Running":
            status["phase"] = "Running" if all(phase == "Running" for phase in phases) else "Scaling"
        else:
            status["phase"] = "Created"
        self._say(status, status["phase"], f"the job is {status['phase']}", now)

    def _say(self, status: Object, kind: str, words: str, now: float) -> None:
        conditions.put(status, kind, true=True, reason=kind, message=words, now=now)

    def _make(self, step: Step, job: Object, name: str, role: str, index: int, spec: Object) -> None:
        labels = {
            "group-name": self.resource.group,
            "training-job-name": name_of(job),
            "training-job-role": role,
            "replica-index": str(index),
        }
        restart = str(spec.get("restartPolicy") or "Never")
        step.make.append((PODS, self.pod(job, name, spec["template"], labels, restart)))
        service = {"apiVersion": "v1", "kind": "Service", "metadata": self.owned(job, name, labels)}
        ports = [{"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"}]
        step.make.append((SERVICES, {**service, "spec": {"clusterIP": "None", "selector": labels, "ports": ports}}))


class DlRover(Trade):
    """A master first; when it runs, a pod for each rank. A lost rank comes back in a new pod, within its budget."""

    resource = ELASTIC_JOBS
    prefix = "elasticjob.dlrover/"
    master = "dlrover-master"

    def step(self, job: Object, found: Found, now: float) -> Step:
        whole = copy.deepcopy(job.get("status") or {})
        phase, status = whole.get("phase") or "", whole.setdefault("status", {})
        if phase in ("Succeeded", "Failed"):
            return Step(whole, remove=[pod for pod in found.pods if phase_of(pod) in ("Pending", "Running")])
        master = [pod for pod in found.pods if self._place(pod)[0] == self.master]
        step = Step(whole, make=[self._master(job, len(master))] if self._needs_master(master) else [])
        if job["spec"].get("suspend"):
            step.remove = [pod for pod in found.pods if pod not in master]
            self._enter(job, whole, "Suspended", now)
            return step
        at(status, "startTime", now)
        lost = [f"master failed with {exit_code(pod)}" for pod in master if exit_code(pod) == 1]
        over = bool(found.pods)
        for role, spec in self._roles(job).items():
            ranks = self._ranks(found, role)
            count = int(spec.get("replicas") or 1)
            step.remove += [pod for rank, pods in ranks.items() if rank >= count for pod in pods]
            if any(phase_of(pod) == "Running" for pod in master):
                lost += self._staff(step, job, role, ranks, count)
            done = [any(phase_of(pod) == "Succeeded" for pod in ranks.get(rank, ())) for rank in range(count)]
            over = over and (all(done) or role == "ps")
            status.setdefault("replicaStatuses", {})[role] = _counts(ranks)
        running = all(group["active"] for group in status["replicaStatuses"].values())
        phase = (
            "Failed" if lost else "Succeeded" if over else "Running" if running else "Pending" if master else "Created"
        )
        self._enter(job, whole, phase, now, "; ".join(lost))
        if phase in ("Succeeded", "Failed"):
            at(status, "completionTime", now)
            step.make = []
        return step

    def _roles(self, job: Object) -> dict[str, Object]:
        return {name.lower(): spec for name, spec in job["spec"]["replicaSpecs"].items() if name.lower() != self.master}

    def _ranks(self, found: Found, role: str) -> dict[int, list[Object]]:
        ranks: dict[int, list[Object]] = {}
        for pod in found.pods:
            if self._place(pod)[0] == role and not is_leaving(pod):
                ranks.setdefault(self._place(pod)[1], []).append(pod)
        return ranks

    def _staff(self, step: Step, job: Object, role: str, ranks: dict[int, list[Object]], count: int) -> list[str]:
        """Makes what ranks lack; returns why one can have no further pod."""
        spec = self._roles(job)[role]
        budget = int(spec.get("restartCount", 3))
        used = 1 + max(
            (int(labels_of(p)[f"{self.prefix}replica-index"]) for ps in ranks.values() for p in ps), default=-1
        )
        for rank in range(count):
            pods = ranks.get(rank, [])
            if any(phase_of(pod) != "Failed" for pod in pods):
                continue
            counted = [pod for pod in pods if exit_code(pod) not in KILLED]
            if len(counted) > budget:
                return [f"{role} {rank} failed {len(counted)} times, with {exit_code(counted[-1])} at last"]
            number = used if pods or used > rank else rank
            used = max(used, number) + 1
            step.make.append((PODS, self._pod(job, role, rank, number, len(pods), count)))
        return []

    def _pod(self, job: Object, role: str, rank: int, number: int, relaunches: int, count: int) -> Object:
        labels = self._labels(job, role, rank, number) | {f"{self.prefix}relaunch-count": str(relaunches)}
        name = f"{name_of(job)}-edljob-{role}-{number}"
        pod = self.pod(job, name, self._roles(job)[role]["template"], labels)
        env = {
            "ELASTIC_JOB_NAME": name_of(job),
            "NODE_TYPE": role,
            "NODE_ID": number,
            "NODE_RANK": rank,
            "NODE_NUM": count,
        }
        env |= {
            "RANK": rank,
            "WORLD_SIZE": count,
            "DLROVER_MASTER_ADDR": f"elasticjob-{name_of(job)}-{self.master}:50001",
        }
        for container in pod["spec"]["containers"]:
            told = [{"name": key, "value": str(value)} for key, value in env.items()]
            container["env"] = [*(container.get("env") or []), *told]
        return pod

    def _needs_master(self, master: list[Object]) -> bool:
        return all(phase_of(pod) == "Failed" and exit_code(pod) != 1 for pod in master)

    def _master(self, job: Object, number: int) -> tuple[Resource, Object]:
        given = {name.lower(): spec for name, spec in job["spec"]["replicaSpecs"].items()}.get(self.master) or {}
        asked = {"requests": {"cpu": "1", "memory": "2Gi"}}
        usual = {"spec": {"containers": [{"name": "main", "image": "dlrover-master", "resources": asked}]}}
        labels = self._labels(job, self.master, 0, number)
        pod = self.pod(job, f"elasticjob-{name_of(job)}-{self.master}-{number}", given.get("template") or usual, labels)
        pod["metadata"]["annotations"].setdefault("convoy.dev/duration", "8760h")
        return PODS, pod

    def _labels(self, job: Object, role: str, rank: int, number: int) -> dict[str, str]:
        about = {"name": name_of(job), "replica-type": role, "replica-index": number, "rank-index": rank}
        return {"app": "dlrover", **{f"{self.prefix}{key}": str(value) for key, value in about.items()}}

    def _place(self, pod: Object) -> tuple[str, int]:
        labels = labels_of(pod)
        return labels.get(f"{self.prefix}replica-type", ""), int(labels.get(f"{self.prefix}rank-index") or 0)

    def _enter(self, job: Object, whole: Object, phase: str, now: float, why: str = "") -> None:
        whole["phase"] = phase
        words = why or f"ElasticJob {name_of(job)} is {phase.lower()}."
        conditions.put(whole["status"], phase, true=True, reason=f"Job{phase}", message=words, now=now)


def _counts(ranks: dict[int, list[Object]]) -> Object:
    phases = [phase_of(pod) for pods in ranks.values() for pod in pods]
    words = {"pending": "Pending", "active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
    return {"initial": 0, **{word: phases.count(phase) for word, phase in words.items()}}
