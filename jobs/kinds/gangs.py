"""Gang scheduling in a member: what makes a job's pods start together or not at all, by what the member serves. Pure.

Three ways are known: a PodGroup of scheduler-plugins (of its present or its former API group) and a label, a PodGroup of
Volcano and annotations, annotations alone for Koordinator. Pods that ask for Volcano by name get its way; else the first that
is served. Says nothing about whether it fits.
"""

from collections.abc import Callable
from typing import Any

from fleet.errors import FieldFault
from fleet.kube.resources import POD_GROUPS, RESERVATIONS, SIGS_POD_GROUPS, VOLCANO_POD_GROUPS, Resource
from jobs.kinds.base import Amounts, Faults, Kind, Manifest, Reading, set_metadata

LABEL, SIGS_LABEL = "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"
GANG_SCHEDULER = "convoy.dev/gang-scheduler"
"""Annotation of a cluster: the scheduler that acts on PodGroups of scheduler-plugins, where that is not the default one."""
VOLCANO = "volcano"
VOLCANO_GROUP, VOLCANO_ROLE = "scheduling.k8s.io/group-name", "volcano.sh/task-spec"
VOLCANO_HINTS = "volcano.sh/task-"
"""Annotations of a job that its group has to carry: task-topology-affinity, task-topology-anti-affinity, task-order."""
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
KOORDINATOR = "gang.scheduling.koordinator.sh/"
GROUPS = (POD_GROUPS, SIGS_POD_GROUPS, VOLCANO_POD_GROUPS)
"""What `bind` may ask to be made, under the job's own name."""

Serves = Callable[[str, str], bool]
"""(api version, kind) -> whether the member has it."""
Group = tuple[Resource, Manifest]


def bind(kind: Kind, body: Manifest, reading: Reading, serves: Serves, scheduler: str = "") -> Group | None:
    """Binds the pods of ``body`` in place; returns the group that has to be there before the job is.

    ``scheduler`` is the one that acts on PodGroups of scheduler-plugins; pods that name none are given its name.
    """
    if kind.own_gang or reading.gang < 2 or _says_itself(kind, body):
        return None
    has = {each for each in (*GROUPS, RESERVATIONS) if serves(each.api_version, each.kind)}
    if VOLCANO_POD_GROUPS in has and (asks_volcano(kind, body) or not has & {POD_GROUPS, RESERVATIONS}):
        return _volcano(kind, body, reading)
    if POD_GROUPS in has:
        return _of_scheduler_plugins(kind, body, reading, POD_GROUPS, LABEL, scheduler)
    if RESERVATIONS in has:
        _koordinator(kind, body, reading)
        return None
    if SIGS_POD_GROUPS in has:
        return _of_scheduler_plugins(kind, body, reading, SIGS_POD_GROUPS, SIGS_LABEL, scheduler)
    return None


def asks_volcano(kind: Kind, manifest: Manifest) -> bool:
    return any((template.get("spec") or {}).get("schedulerName") == VOLCANO for _, template in kind.templates(manifest))


def least_resources(reading: Reading) -> dict[str, str]:
    """What the first ``gang`` pods ask, role by role, as quantities."""
    left, total = reading.gang, Amounts()
    for role in reading.roles:
        taken = min(left, role.replicas)
        left -= taken
        for resource, amount in role.request.items():
            total[resource] = total.get(resource, 0) + amount * taken
    return {
        resource: f"{amount}m" if resource == "cpu" else str(amount)
        for resource, amount in sorted(total.items())
        if resource != "pods" and amount
    }


def group_named_by(template: Manifest) -> str:
    """The PodGroup of `SIGS_POD_GROUPS` that a person's pods name: by its label, or as a gang of Koordinator."""
    metadata = template.get("metadata") or {}
    of_gang = (metadata.get("annotations") or {}).get(f"{KOORDINATOR}name")
    return str((metadata.get("labels") or {}).get(SIGS_LABEL) or of_gang or "")


def pod_group_faults(manifest: Manifest) -> list[FieldFault]:
    """Of a PodGroup of `SIGS_POD_GROUPS` that a person applies."""
    faults = Faults()
    least = faults.mapping(manifest.get("spec"), "spec", required=True).get("minMember")
    if type(least) is not int or least < 1:
        faults.add("spec.minMember", f"must be the number of pods that start together, at least 1, not {least!r}")
    return faults.found


def _of_scheduler_plugins(
    kind: Kind, body: Manifest, reading: Reading, resource: Resource, label: str, scheduler: str
) -> Group:
    for _, template in kind.gang_templates(body):
        set_metadata(template, "labels", {label: body["metadata"]["name"]})
        if scheduler and not template["spec"].get("schedulerName"):
            template["spec"]["schedulerName"] = scheduler
    return _group(resource, body, {"minMember": reading.gang})


def _says_itself(kind: Kind, manifest: Manifest) -> bool:
    """Whether the pods carry a gang of the person's own, of Koordinator or by a PodGroup: it is complete in itself."""
    return any(group_named_by(template) for _, template in kind.templates(manifest))


def _volcano(kind: Kind, job: Manifest, reading: Reading) -> Group:
    for role, template in kind.gang_templates(job):
        set_metadata(template, "annotations", {VOLCANO_GROUP: job["metadata"]["name"], VOLCANO_ROLE: role})
        template["spec"]["schedulerName"] = VOLCANO
    notes: dict[str, str] = job["metadata"].get("annotations") or {}
    spec: dict[str, Any] = {"minMember": reading.gang, "minResources": least_resources(reading)}
    policy = ((job.get("spec") or {}).get("runPolicy") or {}).get("schedulingPolicy") or {}
    if queue := policy.get("queue") or notes.get(VOLCANO_QUEUE):
        spec["queue"] = queue
    resource, body = _group(VOLCANO_POD_GROUPS, job, spec)
    set_metadata(body, "annotations", {key: value for key, value in notes.items() if key.startswith(VOLCANO_HINTS)})
    return resource, body


def _koordinator(kind: Kind, body: Manifest, reading: Reading) -> None:
    gang = {"name": body["metadata"]["name"], "min-available": str(reading.gang), "total-number": str(reading.pods)}
    for _, template in kind.gang_templates(body):
        set_metadata(template, "annotations", {f"{KOORDINATOR}{key}": value for key, value in gang.items()})


def _group(resource: Resource, job: Manifest, spec: Manifest) -> Group:
    metadata = job["metadata"]
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": dict(metadata.get("labels") or {}),
        },
        "spec": spec,
    }
    return resource, body
