"""Defaults and validation of new pods, Jobs, Services and Namespaces, as far as clients depend on them.

The functions change the body in place, so the caller must not share it.
"""

import copy
from collections.abc import Callable
from typing import Any

from fleet.kube import names
from fleet.kube.requests.status import invalid
from fleet.kube.resources import JOBS, NAMESPACES, PODS, SERVICES, Resource

Object = dict[str, Any]
_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_CHANGING = ("activeDeadlineSeconds", "schedulingGates", "terminationGracePeriodSeconds", "tolerations")
_COUNTS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")


def apply(resource: Resource, body: Object) -> None:
    """Adds defaults to ``body``, a new object of a built-in kind. Raises Invalid for a spec that cannot run."""
    default = _DEFAULTS.get((resource.group, resource.plural))
    if default is not None:
        default(body)


def complete(resource: Resource, body: Object) -> None:
    """Adds to ``body`` the fields that the server sets without a field manager, such as the initial status."""
    add = _COMPLETED.get((resource.group, resource.plural))
    if add is not None:
        add(body)


def check_pod_update(old: Object, new: Object) -> None:
    """Raises Invalid if fields other than images, deadline, grace period and tolerations change. Adds defaults to ``new``."""
    name, spec = old["metadata"]["name"], {**(new.get("spec") or {})}
    new["spec"] = spec
    _default_pod_spec(spec, PODS, name, "spec")
    before = copy.deepcopy(old["spec"])
    _default_pod_spec(before, PODS, name, "spec")
    for field, value in (("serviceAccountName", "default"), ("enableServiceLinks", True)):
        spec.setdefault(field, value)
        before.setdefault(field, value)
    if _lasting(spec) != _lasting(before):
        message = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, "
            "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or `spec.tolerations`"
        )
        raise invalid(PODS, name, "spec", message)
    if added := [gate for gate in gates_of(spec) if gate not in gates_of(before)]:
        message = f"Forbidden: only deletion is allowed, but found new scheduling gate {added[0]!r}"
        raise invalid(PODS, name, "spec.schedulingGates", message)


def gates_of(spec: Object) -> list[str]:
    """The names of the gates that keep a pod from being bound."""
    return [
        str(gate["name"]) for gate in spec.get("schedulingGates") or [] if isinstance(gate, dict) and "name" in gate
    ]


def _lasting(spec: Object) -> Object:
    result = {field: value for field, value in spec.items() if field not in _CHANGING}
    for field in ("containers", "initContainers"):
        result[field] = [{**container, "image": ""} for container in spec.get(field) or []]
    return result


def _default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    _default_pod_spec(spec, PODS, pod["metadata"]["name"], "spec")
    spec.setdefault("enableServiceLinks", True)
    if spec.get("nodeName") and gates_of(spec):
        message = "Forbidden: cannot be set until all schedulingGates have been cleared"
        raise invalid(PODS, pod["metadata"]["name"], "spec.nodeName", message)


def _complete_pod(pod: Object) -> None:
    pod["spec"].setdefault("serviceAccountName", "default")
    pod["status"] = {"phase": "Pending", "qosClass": _quality(pod["spec"]["containers"])}
    if gates_of(pod["spec"]):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
        pod["status"]["conditions"] = [gated]


def _default_pod_spec(spec: Object, resource: Resource, name: str, field: str) -> None:
    if not spec.get("containers"):
        raise invalid(resource, name, f"{field}.containers", "Required value")
    seen: set[str] = set()
    for part in ("containers", "initContainers"):
        for container in _named(spec.get(part) or [], seen, resource, name, f"{field}.{part}"):
            _default_container(container)
    if spec.get("restartPolicy", "Always") not in ("Always", "OnFailure", "Never"):
        message = f"Unsupported value: {spec['restartPolicy']!r}: supported values: Always, Never, OnFailure"
        raise invalid(resource, name, f"{field}.restartPolicy", message)
    for key, value in _POD.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})


def _named(containers: Any, seen: set[str], resource: Resource, name: str, field: str) -> list[Object]:
    """The containers, whose names are labels and none of those that were seen: they are part of the paths of logs."""
    if not isinstance(containers, list):
        raise invalid(resource, name, field, "Invalid value: must be a list")
    for index, container in enumerate(containers):
        where = f"{field}[{index}]"
        if not isinstance(container, dict):
            raise invalid(resource, name, where, f"Invalid value: {container!r}: must be an object")
        if not container.get("name"):
            raise invalid(resource, name, f"{where}.name", "Required value")
        if fault := names.label_fault(container["name"]):
            raise invalid(resource, name, f"{where}.name", f"Invalid value: {container['name']!r}: {fault}")
        if container["name"] in seen:
            raise invalid(resource, name, f"{where}.name", f"Duplicate value: {container['name']!r}")
        seen.add(container["name"])
    return containers


def _default_container(container: Object) -> None:
    tag = str(container.get("image") or "").rpartition("/")[2].partition(":")[2]
    container.setdefault("imagePullPolicy", "IfNotPresent" if tag not in ("", "latest") else "Always")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container["resources"] = {**(container.get("resources") or {})}
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _quality(containers: list[Object]) -> str:
    requested = [container.get("resources") or {} for container in containers]
    kinds = ("cpu", "memory")
    if not any((a.get(part) or {}).get(kind) for a in requested for part in ("limits", "requests") for kind in kinds):
        return "BestEffort"
    for resources in requested:
        limits = resources.get("limits") or {}
        requests = {**limits, **(resources.get("requests") or {})}
        if any(not limits.get(kind) or limits[kind] != requests[kind] for kind in kinds):
            return "Burstable"
    return "Guaranteed"


def _default_job(job: Object) -> None:
    spec, metadata = job.setdefault("spec", {}), job["metadata"]
    for count in _COUNTS:
        value = spec.get(count)
        if value is not None and (not isinstance(value, int) or value < 0):
            message = f"Invalid value: {value}: must be greater than or equal to 0"
            raise invalid(JOBS, metadata["name"], f"spec.{count}", message)
    template = spec["template"] = {**(spec.get("template") or {})}
    pods = template["spec"] = {**(template.get("spec") or {})}
    if pods.get("restartPolicy") not in ("OnFailure", "Never"):
        message = f"Unsupported value: {pods.get('restartPolicy') or 'Always'!r}: supported values: OnFailure, Never"
        raise invalid(JOBS, metadata["name"], "spec.template.spec.restartPolicy", message)
    _default_pod_spec(pods, JOBS, metadata["name"], "spec.template.spec")
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)


def _complete_job(job: Object) -> None:
    """Adds the selector and the pod labels with the Job's uid."""
    spec, metadata = job["spec"], job["metadata"]
    template = spec["template"] = {**spec["template"]}
    own = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
    template["metadata"] = {**(template.get("metadata") or {})}
    template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), **own}
    spec["selector"] = {"matchLabels": {"controller-uid": metadata["uid"]}}
    job["status"] = {}


def _default_namespace(namespace: Object) -> None:
    name = namespace["metadata"]["name"]
    labels = namespace["metadata"].get("labels") or {}
    namespace["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}


def _complete_namespace(namespace: Object) -> None:
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _default_service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _complete_service(service: Object) -> None:
    service["status"] = {"loadBalancer": {}}


_DEFAULTS: dict[tuple[str, str], Callable[[Object], None]] = {
    (PODS.group, PODS.plural): _default_pod,
    (JOBS.group, JOBS.plural): _default_job,
    (NAMESPACES.group, NAMESPACES.plural): _default_namespace,
    (SERVICES.group, SERVICES.plural): _default_service,
}
_COMPLETED: dict[tuple[str, str], Callable[[Object], None]] = {
    (PODS.group, PODS.plural): _complete_pod,
    (JOBS.group, JOBS.plural): _complete_job,
    (NAMESPACES.group, NAMESPACES.plural): _complete_namespace,
    (SERVICES.group, SERVICES.plural): _complete_service,
}
