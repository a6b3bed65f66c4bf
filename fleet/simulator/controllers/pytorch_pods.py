"""The pods, services and pod group a PyTorchJob asks for: names, labels, environment. Pure."""

import copy
from typing import Any

from .objects import Object, labels_of, name_of, namespace_of, owner_reference
from .packing import POD_GROUP

API_VERSION, KIND = "kubeflow.org/v1", "PyTorchJob"
OPERATOR = "pytorchjob-controller"
ROLES = ("Master", "Worker")
CONTAINER = "pytorch"
PORT_NAME, PORT = "pytorchjob-port", 23456
PREFIX = "training.kubeflow.org/"


def roles_of(job: Object) -> dict[str, Object]:
    """Role -> its spec, Master first; role names are accepted in any case."""
    given = (job.get("spec") or {}).get("pytorchReplicaSpecs") or {}
    known = {name.capitalize(): spec for name, spec in given.items()}
    return {role: known[role] for role in ROLES if known.get(role)}


def replicas_of(role_spec: Object) -> int:
    replicas = role_spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def restart_policy_of(role_spec: Object) -> str:
    return str(role_spec.get("restartPolicy") or "OnFailure")


def policy_of(job: Object) -> Object:
    return dict((job.get("spec") or {}).get("runPolicy") or {})


def pod_name(job: Object, role: str, index: int) -> str:
    return f"{name_of(job)}-{role.lower()}-{index}"


def what_is_wrong(job: Object) -> str:
    """Why the job can never run, in words; empty when it can."""
    roles = roles_of(job)
    if not roles:
        return "pytorchReplicaSpecs has neither Master nor Worker"
    if "Master" in roles and replicas_of(roles["Master"]) != 1:
        return "there must be exactly one Master"
    if "elasticPolicy" in job["spec"] and "Worker" not in roles:
        return "elasticPolicy needs the role Worker"
    for role, spec in roles.items():
        containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
        if not any(c.get("name") == CONTAINER for c in containers):
            return f"{role} has no container named {CONTAINER}"
    return ""


def own_group(job: Object) -> Object | None:
    """The PodGroup this job brings along, when it states a scheduling policy and its pods name no group of their own."""
    scheduling = policy_of(job).get("schedulingPolicy")
    roles = roles_of(job)
    labels = [((spec.get("template") or {}).get("metadata") or {}).get("labels") or {} for spec in roles.values()]
    if not scheduling or any(POD_GROUP in given for given in labels):
        return None
    total = sum(replicas_of(spec) for spec in roles.values())
    spec: Object = {"minMember": int(scheduling.get("minAvailable") or total)}
    for field in ("minResources", "scheduleTimeoutSeconds"):
        if scheduling.get(field):
            spec[field] = scheduling[field]
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {**_owned(job), "name": name_of(job)},
        "spec": spec,
    }


def pod_of(job: Object, role: str, index: int) -> Object:
    role_spec = roles_of(job)[role]
    template = copy.deepcopy(role_spec.get("template") or {})
    meta, spec = template.get("metadata") or {}, template["spec"]
    labels = {**(meta.get("labels") or {}), **_labels(job, role, index)}
    if own_group(job):
        labels[POD_GROUP] = name_of(job)
    policy = restart_policy_of(role_spec)
    spec["restartPolicy"] = "Never" if policy == "ExitCode" else policy
    port = _add_port(spec)
    env = [{"name": key, "value": value} for key, value in environment(job, role, index, port).items()]
    for container in spec["containers"]:
        container["env"] = [*(container.get("env") or []), *env]
    if role == "Worker" and "Master" in roles_of(job):
        spec["initContainers"] = [*(spec.get("initContainers") or []), _wait_for_master(job)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **_owned(job),
            "name": pod_name(job, role, index),
            "labels": labels,
            "annotations": dict(meta.get("annotations") or {}),
        },
        "spec": spec,
    }


def service_of(job: Object, role: str, index: int, port: int = PORT) -> Object:
    labels = _labels(job, role, index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_owned(job), "name": pod_name(job, role, index), "labels": labels},
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "ports": [{"name": PORT_NAME, "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }


def environment(job: Object, role: str, index: int, port: int) -> dict[str, str]:
    roles = roles_of(job)
    elastic = job["spec"].get("elasticPolicy")
    nproc = str(job["spec"].get("nprocPerNode") or "auto")
    total = sum(replicas_of(spec) for spec in roles.values())
    env = {"PYTHONUNBUFFERED": "1"}
    if "Master" in roles:
        rank = index if role == "Master" else index + 1
        master = pod_name(job, "Master", 0)
        env |= {
            "MASTER_PORT": str(port),
            "PET_MASTER_PORT": str(port),
            "MASTER_ADDR": master,
            "PET_MASTER_ADDR": master,
            "WORLD_SIZE": str(total * (int(nproc) if nproc.isdigit() else 1)),
            "RANK": str(rank),
            "PET_NODE_RANK": str(rank),
        }
    env["PET_NPROC_PER_NODE"] = nproc
    env["PET_NNODES"] = str(total)
    return env | _elastic_environment(job, elastic, roles, port) if elastic else env


def _elastic_environment(job: Object, elastic: Object, roles: dict[str, Object], port: int) -> dict[str, str]:
    workers = replicas_of(roles["Worker"])
    least = elastic.get("minReplicas") or elastic.get("maxReplicas") or workers
    most = elastic.get("maxReplicas") or elastic.get("minReplicas") or workers
    host = elastic.get("rdzvHost") or pod_name(job, "Worker", 0)
    optional: dict[str, Any] = {
        "PET_RDZV_ID": elastic.get("rdzvId"),
        "PET_MAX_RESTARTS": elastic.get("maxRestarts"),
        "PET_STANDALONE": "" if elastic.get("standalone") else None,
        "PET_RDZV_CONF": ",".join(f"{c['key']}={c['value']}" for c in elastic.get("rdzvConf") or []) or None,
    }
    return {
        "PET_NNODES": f"{least}:{most}",
        "PET_RDZV_BACKEND": str(elastic.get("rdzvBackend") or "c10d"),
        "PET_RDZV_ENDPOINT": f"{host}:{elastic.get('rdzvPort') or port}",
        **{name: str(value) for name, value in optional.items() if value is not None},
    }


def _owned(job: Object) -> Object:
    return {"namespace": namespace_of(job), "ownerReferences": [owner_reference(job, API_VERSION, KIND)]}


def _labels(job: Object, role: str, index: int) -> dict[str, str]:
    chief = role == "Master" or ("Master" not in roles_of(job) and index == 0)
    labels = {
        f"{PREFIX}job-name": name_of(job),
        f"{PREFIX}operator-name": OPERATOR,
        f"{PREFIX}replica-type": role.lower(),
        f"{PREFIX}replica-index": str(index),
    }
    return {**labels, f"{PREFIX}job-role": "master"} if chief else labels


def place_of(pod: Object) -> tuple[str, int]:
    """Role and index of one of the job's pods."""
    labels = labels_of(pod)
    return labels.get(f"{PREFIX}replica-type", "").capitalize(), int(labels.get(f"{PREFIX}replica-index", "-1"))


def _add_port(spec: Object) -> int:
    main = next(c for c in spec["containers"] if c["name"] == CONTAINER)
    ports = main.setdefault("ports", [])
    for entry in ports:
        if entry.get("name") == PORT_NAME:
            return int(entry["containerPort"])
    ports.append({"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"})
    return PORT


def _wait_for_master(job: Object) -> Object:
    master = pod_name(job, "Master", 0)
    return {
        "name": "init-pytorch",
        "image": "alpine:3.10",
        "command": ["sh", "-c", f"until nslookup {master}; do sleep 1; done"],
        "resources": {"requests": {"cpu": "50m", "memory": "10Mi"}, "limits": {"cpu": "100m", "memory": "20Mi"}},
    }
