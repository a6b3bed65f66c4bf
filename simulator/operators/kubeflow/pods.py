"""The pods, services and pod group of a kubeflow.org job: names, labels and environment by its kind. No I/O."""

import copy
from dataclasses import dataclass, field
from typing import Any

from fleet.kube.resources import POD_GROUPS, VOLCANO_POD_GROUPS, Resource
from simulator.machinery.objects import Object, annotations_of, labels_of, name_of, namespace_of, owner_reference
from simulator.scheduler.packing import POD_GROUP, VOLCANO, VOLCANO_GROUP, VOLCANO_ROLE

PREFIX = "training.kubeflow.org/"


@dataclass(slots=True)
class Count:
    """The pods of one role."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    fatal: int = 0
    done: set[int] = field(default_factory=set)
    """The indices of pods that succeeded."""


Counts = dict[str, Count]


class KubeflowKind:
    """The properties of one kind of kubeflow.org job. Each kind has a subclass."""

    resource: Resource
    key: str
    roles: tuple[str, ...]
    chiefs: tuple[str, ...]
    container: str
    port_name: str = ""
    port: int = 0
    operator: str
    restart_default: str
    services = True

    @property
    def kind(self) -> str:
        return self.resource.kind

    def wrong(self, job: Object) -> str:
        """Why the job can never run. Empty if it can."""
        raise NotImplementedError

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        raise NotImplementedError

    def finish_pod(self, job: Object, role: str, pod: Object) -> None:
        """Changes a pod just before it is created."""
        return

    def extras(self, job: Object) -> list[tuple[Resource, Object]]:
        """Other objects to create for the job."""
        return []

    def made_by_job(self, role: str) -> bool:
        """Whether a batch Job of the same name creates the pods of a role."""
        return False

    def job_of(self, job: Object, pod: Object) -> Object:
        """The batch Job that creates the pod."""
        raise NotImplementedError

    def due(self, job: Object, role: str, counts: Counts) -> bool:
        """Whether the pods of a role may be created now."""
        return True

    def runs(self, job: Object, counts: Counts) -> bool:
        return bool(counts[self.chief(counts)].active)

    def succeeded(self, job: Object, counts: Counts) -> bool:
        raise NotImplementedError

    def tolerates(self, job: Object, role: str) -> bool:
        """Whether failures of pods of that role do not fail the job."""
        return False

    def chief(self, roles: dict[str, Any]) -> str:
        return next(role for role in self.chiefs if role in roles)

    def pod_name(self, job: Object, role: str, index: int) -> str:
        return f"{name_of(job)}-{role.lower()}-{index}"

    def roles_of(self, job: Object) -> dict[str, Object]:
        """The specs of the roles, in the kind's order. Role names are accepted in any case."""
        replica_specs = (job.get("spec") or {}).get(self.key) or {}
        known = {name.lower(): spec for name, spec in replica_specs.items()}
        return {role: known[role.lower()] for role in self.roles if known.get(role.lower())}

    def restart_policy_of(self, role_spec: Object) -> str:
        return str(role_spec.get("restartPolicy") or self.restart_default)

    def labels(self, job: Object, role: str, index: int) -> dict[str, str]:
        labels = {
            f"{PREFIX}job-name": name_of(job),
            f"{PREFIX}operator-name": self.operator,
            f"{PREFIX}replica-type": role.lower(),
            f"{PREFIX}replica-index": str(index),
        }
        chief = role == self.chief(self.roles_of(job)) and index == 0
        return {**labels, f"{PREFIX}job-role": "master"} if chief else labels

    def role_of(self, lower: str) -> str:
        return next((known for known in self.roles if known.lower() == lower), lower)

    def place_of(self, pod: Object) -> tuple[str, int]:
        """Role and index of one of the job's pods."""
        labels = labels_of(pod)
        return self.role_of(labels.get(f"{PREFIX}replica-type", "")), int(labels.get(f"{PREFIX}replica-index", "-1"))

    def missing_container(self, job: Object) -> str:
        for role, spec in self.roles_of(job).items():
            containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
            if self.container and not any(c.get("name") == self.container for c in containers):
                return f"{role} has no container named {self.container}"
        return ""


def replicas_of(role_spec: Object) -> int:
    replicas = role_spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def policy_of(job: Object) -> Object:
    return dict((job.get("spec") or {}).get("runPolicy") or {})


def own_group(kubeflow_kind: KubeflowKind, job: Object) -> tuple[Resource, Object] | None:
    """The PodGroup to create for a job with a scheduling policy whose pods name no group."""
    scheduling = policy_of(job).get("schedulingPolicy")
    roles = kubeflow_kind.roles_of(job)
    templates = [spec.get("template") or {} for spec in roles.values()]
    if not scheduling or any(_group_of(template) for template in templates):
        return None
    volcano = any((template.get("spec") or {}).get("schedulerName") == VOLCANO for template in templates)
    resource = VOLCANO_POD_GROUPS if volcano else POD_GROUPS
    total = sum(replicas_of(spec) for spec in roles.values())
    spec: Object = {"minMember": int(scheduling.get("minAvailable") or total)}
    for name in ("minResources", "scheduleTimeoutSeconds", "queue"):
        if scheduling.get(name):
            spec[name] = scheduling[name]
    meta = {**_owned(kubeflow_kind, job), "name": name_of(job)}
    return resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


def volcano_group(kubeflow_kind: KubeflowKind, job: Object) -> str:
    """The Volcano PodGroup that the job's pods wait for; empty when there is none."""
    templates = [spec.get("template") or {} for spec in kubeflow_kind.roles_of(job).values()]
    named = [annotations_of({"metadata": t.get("metadata") or {}}).get(VOLCANO_GROUP, "") for t in templates]
    own = own_group(kubeflow_kind, job)
    return next(filter(None, named), name_of(own[1]) if own and own[0] == VOLCANO_POD_GROUPS else "")


def pod_of(kubeflow_kind: KubeflowKind, job: Object, role: str, index: int) -> Object:
    role_spec = kubeflow_kind.roles_of(job)[role]
    template = copy.deepcopy(role_spec.get("template") or {})
    meta, spec = template.get("metadata") or {}, template["spec"]
    labels = {**(meta.get("labels") or {}), **kubeflow_kind.labels(job, role, index)}
    annotations = dict(meta.get("annotations") or {})
    own = own_group(kubeflow_kind, job)
    if own and own[0] == VOLCANO_POD_GROUPS:
        annotations |= {VOLCANO_GROUP: name_of(job), VOLCANO_ROLE: role.lower()}
    elif own:
        labels[POD_GROUP] = name_of(job)
    policy = kubeflow_kind.restart_policy_of(role_spec)
    spec["restartPolicy"] = "Never" if policy == "ExitCode" else policy
    port = _add_port(kubeflow_kind, spec)
    env = [{"name": key, "value": value} for key, value in kubeflow_kind.environment(job, role, index, port).items()]
    for container in spec["containers"]:
        container["env"] = [*(container.get("env") or []), *env]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **_owned(kubeflow_kind, job),
            "name": kubeflow_kind.pod_name(job, role, index),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }
    kubeflow_kind.finish_pod(job, role, pod)
    return pod


def service_of(kubeflow_kind: KubeflowKind, job: Object, role: str, index: int) -> Object:
    labels = kubeflow_kind.labels(job, role, index)
    port = {
        "name": kubeflow_kind.port_name,
        "port": kubeflow_kind.port,
        "targetPort": kubeflow_kind.port,
        "protocol": "TCP",
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_owned(kubeflow_kind, job), "name": kubeflow_kind.pod_name(job, role, index), "labels": labels},
        "spec": {"clusterIP": "None", "selector": labels, "ports": [port]},
    }


def owned_meta(kubeflow_kind: KubeflowKind, job: Object, name: str) -> Object:
    return {**_owned(kubeflow_kind, job), "name": name}


def _group_of(template: Object) -> str:
    meta = template.get("metadata") or {}
    group = (meta.get("labels") or {}).get(POD_GROUP) or (meta.get("annotations") or {}).get(VOLCANO_GROUP)
    return str(group or "")


def _owned(kubeflow_kind: KubeflowKind, job: Object) -> Object:
    owner = owner_reference(job, kubeflow_kind.resource.api_version, kubeflow_kind.kind)
    return {"namespace": namespace_of(job), "ownerReferences": [owner]}


def _add_port(kubeflow_kind: KubeflowKind, spec: Object) -> int:
    if not kubeflow_kind.container:
        return kubeflow_kind.port
    main = next(c for c in spec["containers"] if c["name"] == kubeflow_kind.container)
    ports = main.setdefault("ports", [])
    for entry in ports:
        if entry.get("name") == kubeflow_kind.port_name:
            return int(entry["containerPort"])
    ports.append({"name": kubeflow_kind.port_name, "containerPort": kubeflow_kind.port, "protocol": "TCP"})
    return kubeflow_kind.port
