"""The decisions of the DLRover 0.6.1 master about its workers, for masters that are not real processes. No I/O.

Each rank has one pod, ``<job>-edljob-<role>-<id>``. A lost rank gets a new pod with a new id and the same rank. A pod that was
killed (137, 143, deleted) is always replaced; any other failure counts against the rank's budget, ``min(restartCount, 5)``. An
all-reduce job ends when the number of failed pods reaches the larger of its worker count and its budget; a pod that ran out of
memory is not replaced. The number of ranks, their ids and relaunches are stored in an annotation of the master pod, in place of
the master's memory: a deleted pod leaves no other trace, and ``replicas`` is read only once.
"""

import copy
import json
from dataclasses import dataclass, field

from fleet.kube.resources import ELASTIC_JOBS
from simulator import images
from simulator.machinery.objects import (
    Object,
    annotations_of,
    exit_code,
    is_leaving,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    phase_of,
)
from simulator.node import lifecycle

MASTER = "dlrover-master"
PREFIX = "elasticjob.dlrover/"
MEMORY = "convoy.dev/dlrover-master"
KILLED, OUT_OF_MEMORY, FATAL = (137, 143), 247, 1
MOST_RELAUNCHES = 5
_GIVES_UP = 1
_PORTS = {"ps": 2222}
_DROPPED = ("terminationGracePeriodSeconds", "priorityClassName")
"""Fields of a worker's template that the master removes."""

Launch = tuple[str, int, int, int]
"""Role, rank, id and relaunch count of a pod to create."""


@dataclass(slots=True)
class Decision:
    launches: list[Launch] = field(default_factory=list)
    memory: dict[str, str] = field(default_factory=dict)
    """The annotation to set on the master. Empty: it does not change."""
    exit_code: int | None = None
    reason: str = ""


@dataclass(slots=True)
class _Rank:
    """One rank: the id and relaunch count of its latest pod, and that pod while it exists."""

    number: int
    relaunches: int
    pod: Object | None = None


def decide(job: Object, pods: list[Object], master: Object) -> Decision:
    """The master's next decision: pods to create, or its own end."""
    roles = {name.lower(): spec for name, spec in job["spec"]["replicaSpecs"].items() if name.lower() != MASTER}
    allreduce = job["spec"].get("distributionStrategy") == "AllreduceStrategy"
    decision, memory, exited = Decision(), json.loads(annotations_of(master).get(MEMORY) or "{}"), []
    before = json.dumps(memory)
    for role, spec in roles.items():
        known = memory.get(role) or {"count": int(spec.get("replicas") or 0), "ranks": {}}
        ranks, count = _ranks(pods, role, known["ranks"]), int(known["count"])
        for rank in range(count):
            ended = _keep(decision, ranks, role, rank, spec, allreduce) if not decision.reason else ""
            if role != "ps":
                exited.append(ended)
        failed = sum(phase_of(pod) == "Failed" for pod in pods if role_of(pod) == role)
        if allreduce and failed >= max(count, _budget(spec)):
            decision.exit_code, decision.reason = 1, f"CodeError: {failed} pods of {role} have failed"
        places = {str(rank): [known_rank.number, known_rank.relaunches] for rank, known_rank in ranks.items()}
        memory[role] = {"count": count, "ranks": places}
    if decision.exit_code is None and exited and all(exited):
        failed = all(ended == "Failed" for ended in exited)
        decision.exit_code, decision.reason = int(failed), "UnknownError: all workers failed" if failed else "Succeeded"
    if decision.exit_code is not None or job["spec"].get("suspend"):
        decision.launches = []
    elif json.dumps(memory) != before:
        decision.memory = {MEMORY: json.dumps(memory)}
    return decision


def _keep(decision: Decision, ranks: dict[int, _Rank], role: str, rank: int, spec: Object, allreduce: bool) -> str:
    """Replaces the rank's pod if necessary. Returns how the rank ended, or an empty string while it continues."""
    known = ranks.get(rank)
    if known is None:
        ranks[rank] = _Rank(max((other.number for other in ranks.values()), default=-1) + 1, 0)
        decision.launches.append((role, rank, ranks[rank].number, 0))
        return ""
    code = _exit(known.pod)
    if code is None:
        return phase_of(known.pod) if known.pod and phase_of(known.pod) == "Succeeded" else ""
    if code in KILLED or _may_relaunch(code, known.relaunches, _budget(spec), allreduce):
        known.number = max(other.number for other in ranks.values()) + 1
        known.relaunches += 1
        decision.launches.append((role, rank, known.number, known.relaunches))
        return ""
    if not allreduce:
        words = f"{'PSError' if role == 'ps' else 'WorkerError'}: {role} {rank} failed with {code}"
        decision.exit_code, decision.reason = 1, words
    return "Failed"


def _may_relaunch(code: int, relaunches: int, budget: int, allreduce: bool) -> bool:
    if allreduce and code == OUT_OF_MEMORY or not allreduce and code == FATAL:
        return False
    return relaunches < budget


def _exit(pod: Object | None) -> int | None:
    """The pod's exit code if it failed, 137 if it was deleted or is being deleted, None if it runs or has succeeded."""
    if pod is None or (is_leaving(pod) and phase_of(pod) in ("Pending", "Running")):
        return KILLED[0]
    return (exit_code(pod) or KILLED[0]) if phase_of(pod) == "Failed" else None


def _ranks(pods: list[Object], role: str, memory: dict[str, list[int]]) -> dict[int, _Rank]:
    ranks = {int(rank): _Rank(number, relaunches) for rank, (number, relaunches) in memory.items()}
    for pod in pods:
        if role_of(pod) != role:
            continue
        labels = labels_of(pod)
        rank, number = int(labels[f"{PREFIX}rank-index"]), int(labels[f"{PREFIX}replica-index"])
        known = ranks.setdefault(rank, _Rank(number, 0))
        if number >= known.number:
            known.number, known.pod = number, pod
            known.relaunches = int(labels.get(f"{PREFIX}relaunch-count") or 0)
    return ranks


def _budget(spec: Object) -> int:
    return min(int(spec.get("restartCount", 3)), MOST_RELAUNCHES)


def give_up(pods: list[Object]) -> list[tuple[Object, dict[str, str]]]:
    """Ends the simulated workers of a job whose master has ended, as failed. Real processes end by themselves."""
    annotations = {lifecycle.END: str(_GIVES_UP)}
    running = [pod for pod in pods if phase_of(pod) in ("Pending", "Running") and role_of(pod) != MASTER]
    simulated = [pod for pod in running if annotations_of(pod).get(images.RUN) != "process"]
    return [(pod, annotations) for pod in simulated if lifecycle.END not in annotations_of(pod)]


def role_of(pod: Object) -> str:
    return labels_of(pod).get(f"{PREFIX}replica-type", "")


def pod(job: Object, role: str, rank: int, number: int, relaunches: int) -> Object:
    """A worker as `pod_scaler.py` creates it.

    It is never restarted, owned but not controlled by the job, and its requests equal its limits.
    """
    spec = next(spec for name, spec in job["spec"]["replicaSpecs"].items() if name.lower() == role)
    body = copy.deepcopy(spec["template"])
    meta = body.get("metadata") or {}
    labels = {"app": "dlrover", f"{PREFIX}name": name_of(job), f"{PREFIX}replica-type": role}
    numbers = {"replica-index": number, "rank-index": rank, "relaunch-count": relaunches}
    labels |= {f"{PREFIX}{key}": str(value) for key, value in numbers.items()}
    body["spec"] = {key: value for key, value in body["spec"].items() if key not in _DROPPED}
    body["spec"]["restartPolicy"] = "Never"
    containers = body["spec"]["containers"]
    main = next((each for each in containers if each.get("name") == "main"), containers[0])
    main.pop("lifecycle", None)
    _set_resources(main)
    main["env"] = [*(main.get("env") or []), *_env(job, role, rank, number, spec)]
    metadata = {
        **meta,
        "name": f"{name_of(job)}-edljob-{role}-{number}",
        "labels": {**(meta.get("labels") or {}), **labels},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, **_owned(job)}, "spec": body["spec"]}


def service(job: Object, role: str, rank: int) -> Object:
    port = _PORTS.get(role, 3333)
    about = {"name": name_of(job), "replica-type": role, "rank-index": str(rank)}
    selector = {f"{PREFIX}{key}": value for key, value in about.items()}
    metadata = {"name": f"{name_of(job)}-edljob-{role}-{rank}", **_owned(job)}
    spec = {"selector": selector, "ports": [{"port": port, "targetPort": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _owned(job: Object) -> Object:
    reference = owner_reference(job, ELASTIC_JOBS.api_version, ELASTIC_JOBS.kind)
    del reference["controller"]
    return {"namespace": namespace_of(job), "ownerReferences": [reference]}


def _set_resources(container: Object) -> None:
    resources = container.setdefault("resources", {})
    asked = resources.get("requests") or {}
    set_ = {"cpu": asked.get("cpu", "0"), "memory": asked.get("memory", "0Mi")}
    resources["requests"] = {**asked, **set_}
    resources["limits"] = {**(resources.get("limits") or asked), **set_}


def _env(job: Object, role: str, rank: int, number: int, spec: Object) -> list[Object]:
    worker = next((s for name, s in job["spec"]["replicaSpecs"].items() if name.lower() == "worker"), spec)
    count = int(worker.get("replicas") or 0)
    fields = {"POD_IP": "status.podIP", "NODE_IP": "status.hostIP", "POD_NAME": "metadata.name"}
    values = {
        "ELASTIC_JOB_NAME": name_of(job),
        "JOB_UID": job["metadata"].get("uid", ""),
        "GRPC_ENABLE_FORK_SUPPORT": "false",
        "NODE_TYPE": role,
        "NODE_ID": number,
        "NODE_NUM": count,
        "NODE_RANK": rank,
        "WORKER_TYPE": role,
        "WORKER_ID": number,
        "WORKER_NUM": count,
        "WORKER_RANK": rank,
        "DLROVER_MASTER_ADDR": f"elasticjob-{name_of(job)}-{MASTER}:50001",
        "DLROVER_MASTER_SERVICE_TYPE": annotations_of(job).get("service_type", "grpc"),
        "MONITOR_ENABLED": "true",
    }
    if job["spec"].get("distributionStrategy") == "AllreduceStrategy":
        values |= {"RANK": rank, "WORLD_SIZE": count}
    by_field = [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()]
    return [*by_field, *({"name": key, "value": str(value)} for key, value in values.items())]
