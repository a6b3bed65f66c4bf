"""Training runtimes of Kubeflow Trainer 2, and what a runtime becomes once a TrainJob's own numbers are written into it. Pure.

The rules are those of the trainer's controller (release 2.2): the nodes of the job are the pods of the group that is marked as
its trainer, of an MPI runtime those of the group ``node``; resources, image, command and variables are those of the container
``node``. Applying the rules twice changes nothing, so a copy may be sent with the result.
"""

import copy
from collections.abc import Iterator
from typing import Any

from fleet.kube.writes import patches
from jobs.kinds.base import Faults, Manifest
from jobs.kinds.jobset import read_groups

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of a group's Jobs: which part of a training it does."""
TRAINER, NODE = "trainer", "node"
INITIALIZERS = {"dataset": "dataset-initializer", "model": "model-initializer"}
CONTAINERS = {TRAINER: NODE, **{step: step for step in INITIALIZERS.values()}}
"""By the label of a group: the container that the trainer's controller writes into."""
_RESERVED = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}
"""By policy: the variables by which processes find each other."""
_POLICIES = ("torch", "mpi", "flux", "jax", "xgboost")


def faults_of(runtime: Manifest) -> Faults:
    """What is wrong with the manifest of a TrainingRuntime or ClusterTrainingRuntime."""
    faults = Faults()
    spec = faults.mapping(runtime.get("spec"), "spec", required=True)
    policy = faults.mapping(spec.get("mlPolicy"), "spec.mlPolicy")
    faults.whole(policy.get("numNodes"), "spec.mlPolicy.numNodes", default=1)
    if len(kinds := [name for name in _POLICIES if name in policy]) > 1:
        faults.add("spec.mlPolicy", f"must be of one kind, not of {' and '.join(kinds)}")
    mpi = faults.mapping(policy.get("mpi"), "spec.mlPolicy.mpi")
    faults.flag(mpi.get("runLauncherAsNode"), "spec.mlPolicy.mpi.runLauncherAsNode")
    template = faults.mapping(spec.get("template"), "spec.template", required=True)
    jobset = faults.mapping(template.get("spec"), "spec.template.spec", required=True)
    path = "spec.template.spec.replicatedJobs"
    read_groups(jobset.get("replicatedJobs"), path, faults)
    if not faults.found:
        _check_steps(jobset["replicatedJobs"], path, faults)
    return faults


def _check_steps(groups: list[Manifest], path: str, faults: Faults) -> None:
    """Groups that are marked as a part of the training: the trainer's webhook in a member refuses others."""
    for number, group in enumerate(groups):
        container = CONTAINERS.get(_step(group))
        if container is None:
            continue
        if group.get("replicas") not in (None, 1):
            faults.add(f"{path}[{number}].replicas", f"must be 1 for a group with the label {STEP}")
        if not any(_containers(group, container)):
            where = f"{path}[{number}].template.spec.template.spec.containers"
            faults.add(where, f"must have a container {container}, which the label {STEP}: {_step(group)} needs")


def check_fit(runtime: Manifest, job: Manifest, faults: Faults) -> None:
    """What the spec of a TrainJob says of parts that its runtime, ``runtime``, does not have, or gives itself.

    The trainer's webhook refuses such a job, where the copy that the fleet sends would run without what it asks for.
    """
    groups = groups_of(runtime)
    names = {group["name"] for group in groups}
    for part, step in INITIALIZERS.items():
        if (job.get("initializer") or {}).get(part) is not None and not any(_step(group) == step for group in groups):
            label = f"{STEP}: {step}"
            faults.add(f"spec.initializer.{part}", f"needs a group of the runtime with the label {label}")
    for number, patch in enumerate(job.get("runtimePatches") or []):
        template = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        for position, change in enumerate((template.get("spec") or {}).get("replicatedJobs") or []):
            if change["name"] not in names:
                path = (
                    f"spec.runtimePatches[{number}].trainingRuntimeSpec.template.spec.replicatedJobs[{position}].name"
                )
                faults.add(path, f"the runtime has the groups {', '.join(sorted(names))}, not {change['name']}")
    reserved = [name for policy, name in _RESERVED.items() if policy in (runtime.get("mlPolicy") or {})]
    for number, entry in enumerate((job.get("trainer") or {}).get("env") or []):
        if any(entry["name"] in listed for listed in reserved):
            faults.add(f"spec.trainer.env[{number}].name", f"{entry['name']} is set by the trainer's controller")


def effective(runtime: Manifest, job: Manifest) -> Manifest:
    """The spec of a runtime with everything that the spec of a TrainJob says written into it.

    Both have been checked. Raises `fleet.kube.writes.patches.PatchError` for a patch that does not fit.
    """
    spec = copy.deepcopy(runtime)
    spec.pop("podGroupPolicy", None)  # The fleet makes the group, of the size that it has placed.
    groups = groups_of(spec)
    for patch in job.get("runtimePatches") or []:
        _patch(spec, groups, ((patch.get("trainingRuntimeSpec") or {}).get("template")) or {})
    _refuse_broken(groups)
    policy = spec.get("mlPolicy") or {}
    for group in groups:
        count = _count(group, policy, (job.get("trainer") or {}).get("numNodes"))
        group["template"]["spec"].update({"parallelism": count, "completions": count})
        if _step(group) in (TRAINER, *INITIALIZERS.values()):
            group["replicas"] = 1
        _write_trainer(group, policy, job.get("trainer") or {})
        _write_initializer(group, job.get("initializer") or {})
    return spec


def _refuse_broken(groups: list[Manifest]) -> None:
    """A patch may have made anything of the groups."""
    faults = Faults()
    read_groups(groups, "spec.template.spec.replicatedJobs", faults)
    if faults.found:
        raise patches.PatchError(f"{faults.found[0].field} {faults.found[0].detail}")


def groups_of(spec: Manifest) -> list[Manifest]:
    """The groups of Jobs in the spec of a runtime."""
    groups: list[Manifest] = spec["template"]["spec"]["replicatedJobs"]
    return groups


def trains(group: Manifest) -> bool:
    """Whether the group's pods are the nodes of the training."""
    return _step(group) == TRAINER


def _step(group: Manifest) -> str:
    labels = (group["template"].get("metadata") or {}).get("labels") or {}
    return str(labels.get(STEP) or "")


def _count(group: Manifest, policy: Manifest, nodes: int | None) -> int:
    """The pods of one of the group's Jobs."""
    parallelism = group["template"]["spec"].get("parallelism")
    count = 1 if parallelism is None else int(parallelism)
    if trains(group) and policy:
        count = 1 if policy.get("numNodes") is None else int(policy["numNodes"])
    if nodes is None:
        return count
    if "mpi" not in policy:
        return nodes if trains(group) else count
    if group["name"] != NODE:
        return count
    return max(nodes - 1, 1) if (policy["mpi"] or {}).get("runLauncherAsNode") else nodes


def _write_trainer(group: Manifest, policy: Manifest, trainer: Manifest) -> None:
    beside = group["name"] == NODE and bool((policy.get("mpi") or {}).get("runLauncherAsNode"))
    for container in _containers(group, NODE) if trains(group) or beside else ():
        if trains(group):
            container.update({field: trainer[field] for field in ("image", "command", "args") if trainer.get(field)})
        if (resources := trainer.get("resourcesPerNode")) and (policy or beside):
            container["resources"] = patches.merge(container.get("resources") or {}, resources)
        _add_env(container, trainer.get("env") or [])


def _write_initializer(group: Manifest, initializer: Manifest) -> None:
    for part, step in INITIALIZERS.items():
        source = initializer.get(part) or {}
        for container in _containers(group, step) if _step(group) == step else ():
            uri = source.get("storageUri")
            _add_env(container, [] if uri is None else [{"name": "STORAGE_URI", "value": uri}])
            _add_env(container, source.get("env") or [])
            if secret := source.get("secretRef"):
                container["envFrom"] = [*(container.get("envFrom") or []), {"secretRef": secret}]


def _containers(group: Manifest, name: str) -> Iterator[Manifest]:
    for container in group["template"]["spec"]["template"]["spec"]["containers"]:
        if container.get("name") == name:
            yield container


def _add_env(container: Manifest, env: list[Any]) -> None:
    if env:
        container["env"] = patches.strategic({"env": container.get("env") or []}, {"env": env})["env"]


def _patch(spec: Manifest, groups: list[Manifest], patch: Manifest) -> None:
    if patch.get("metadata"):
        spec["template"]["metadata"] = patches.merge(spec["template"].get("metadata") or {}, patch["metadata"])
    for change in (patch.get("spec") or {}).get("replicatedJobs") or []:
        for group in groups:
            if group["name"] == change["name"] and change.get("template"):
                group["template"] = patches.strategic(group["template"], change["template"])
