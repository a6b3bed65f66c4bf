"""trainer.kubeflow.org TrainJob (Kubeflow Trainer 2): numbers of a training whose pods a training runtime describes.

The manifest has no pod templates, and so no size, of its own. When it is submitted, the runtime that it names is found and
written into it under `RESOLVED`, with the job's own numbers in it already: from then on it is read like a JobSet, and a runtime
that changes later changes no job that is there. A copy is sent with a TrainingRuntime of its own, made from that, so that the
fleet's marks, gangs, ranks and overrides reach the pods (docs/proposals/0008-trainjob.md).
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fleet.kube.resources import TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from fleet.kube.writes.patches import PatchError
from jobs.kinds import training_runtime
from jobs.kinds.base import RESOLVED, Faults, Find, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.jobset import condition_state, gang_groups, read_groups

RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
_GROUP = TRAIN_JOBS.group
_ENDS = (("Failed", Phase.FAILED), ("Complete", Phase.SUCCEEDED), ("Suspended", Phase.SUSPENDED))
_MISSING = (
    "there is no {kind} {name} in the fleet, or spec.runtimePatches does not fit it: apply it first; "
    "kubectl amc get {plural} {name} -m CLUSTER -oyaml shows that of a cluster"
)
_TUNE = ["tune", "run"]
"""The trainer's controller adds arguments to this command, by what the job says."""
_WRITTEN = ("trainer", "initializer", "runtimePatches")
"""What of a job's spec is written into its runtime."""


class TrainJob(Kind):
    resource = TRAIN_JOBS
    primary_roles = ("launcher", "node")
    makes_services = True
    refers = True
    phase_conditions = {Phase.SUCCEEDED: "Complete", Phase.FAILED: "Failed", Phase.SUSPENDED: "Suspended"}
    """None while it runs: the Kubeflow SDK takes a job with conditions that has not ended for one that waits."""
    companion_resources = (TRAINING_RUNTIMES,)

    def primary_role(self, roles: Iterable[str]) -> str:
        names = list(roles)
        return super().primary_role(names) or next(iter(names), "")

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        """Pods of the Jobs of its JobSet."""
        return [name, *(f"{name}-{role.name}-0-{role.replicas - 1}-00000" for role in roles)]

    def ttl_s(self, manifest: Manifest) -> int | None:
        """The API has no such field."""
        return None

    def drop_ttl(self, manifest: Manifest) -> None:
        """Of the set and its Jobs: one that is deleted when it has ended would be made, and run, once more."""
        if resolved := manifest.get(RESOLVED):
            jobset = resolved["runtime"]["template"]["spec"]
            for spec in (jobset, *(group["template"]["spec"] for group in jobset["replicatedJobs"])):
                spec.pop("ttlSecondsAfterFinished", None)

    def resolve(self, manifest: Manifest, find: Find) -> None:
        manifest.pop(RESOLVED, None)
        faults = Faults()
        spec = self._read_spec(manifest, faults)
        if faults.found:
            return
        kind, name = _reference(spec)
        namespace = "" if kind.startswith("Cluster") else str(manifest["metadata"].get("namespace") or "default")
        if runtime := find(kind, namespace, name):
            try:
                written = training_runtime.effective(runtime["spec"], spec)
            except PatchError:
                return
            read_by = {field: copy.deepcopy(spec.get(field)) for field in _WRITTEN}
            manifest[RESOLVED] = {"runtime": written, "from": read_by}

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = self._read_spec(manifest, faults)
        suspended = faults.flag(spec.get("suspend"), "spec.suspend")
        resolved = manifest.get(RESOLVED)
        if not faults.found and resolved is None:
            kind, name = _reference(spec)
            faults.add("spec.runtimeRef", _MISSING.format(kind=kind, name=name, plural=f"{kind.lower()}s"))
        if faults.found or resolved is None:
            return Reading((), suspended, tuple(faults.found))
        if resolved["from"] != {field: spec.get(field) for field in _WRITTEN}:
            faults.add(
                "spec.trainer", "is written into the pods already: change the pods, not what they were made from"
            )
        training_runtime.check_fit(resolved["runtime"], spec, faults)
        groups = training_runtime.groups_of(resolved["runtime"])
        roles = read_groups(groups, "spec.runtimeRef: template.spec.replicatedJobs", faults)
        gang = {group["name"] for group in gang_groups(groups)}
        min_available = sum(role.replicas for role in roles if role.name in gang)
        pods = tuple(role for role in roles if role.replicas)
        if not min_available and not faults.found:
            faults.add("spec.trainer.numNodes", "must ask for at least one pod")
        return Reading(pods, suspended, tuple(faults.found), min_available, _warnings(spec, groups))

    def _read_spec(self, manifest: Manifest, faults: Faults) -> Manifest:
        """The spec, checked for all that does not depend on the runtime."""
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        reference = faults.mapping(spec.get("runtimeRef"), "spec.runtimeRef", required=True)
        if not isinstance(reference.get("name"), str) or not reference["name"]:
            faults.add("spec.runtimeRef.name", "is required")
        faults.one_of(reference.get("kind"), "spec.runtimeRef.kind", RUNTIMES)
        faults.one_of(reference.get("apiGroup"), "spec.runtimeRef.apiGroup", (_GROUP,))
        trainer = faults.mapping(spec.get("trainer"), "spec.trainer")
        faults.whole(trainer.get("numNodes"), "spec.trainer.numNodes", default=1)
        faults.whole(trainer.get("numProcPerNode"), "spec.trainer.numProcPerNode", default=1, at_least=1)
        resources = faults.mapping(trainer.get("resourcesPerNode"), "spec.trainer.resourcesPerNode")
        for field in ("requests", "limits"):
            faults.mapping(resources.get(field), f"spec.trainer.resourcesPerNode.{field}")
        if not isinstance(trainer.get("image") or "", str):
            faults.add("spec.trainer.image", "must be the name of an image")
        for field in ("command", "args"):
            _read_list(trainer.get(field), f"spec.trainer.{field}", str, faults)
        _check_env(trainer, "spec.trainer", faults)
        initializer = faults.mapping(spec.get("initializer"), "spec.initializer")
        for part in training_runtime.INITIALIZERS:
            source = faults.mapping(initializer.get(part), f"spec.initializer.{part}")
            faults.mapping(source.get("secretRef"), f"spec.initializer.{part}.secretRef")
            _check_env(source, f"spec.initializer.{part}", faults)
        _check_patches(spec.get("runtimePatches"), faults)
        faults.whole(spec.get("activeDeadlineSeconds"), "spec.activeDeadlineSeconds", default=1, at_least=1)
        faults.one_of(spec.get("managedBy") or None, "spec.managedBy", (f"{_GROUP}/trainjob-controller",))
        return spec

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for group in training_runtime.groups_of(manifest[RESOLVED]["runtime"]) if RESOLVED in manifest else ():
            yield group["name"], group["template"]["spec"]["template"]

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        gang = {group["name"] for group in gang_groups(training_runtime.groups_of(manifest[RESOLVED]["runtime"]))}
        return ((role, template) for role, template in self.templates(manifest) if role in gang)

    def companions(self, body: Manifest) -> list[tuple[Resource, Manifest]]:
        resolved, metadata, spec = body.pop(RESOLVED), body["metadata"], body["spec"]
        trainer = spec.get("trainer") or {}
        fields = ["numNodes", "numProcPerNode", *(("command", "args") if trainer.get("command") == _TUNE else ())]
        for field in _WRITTEN:
            spec.pop(field, None)
        # Even an empty one makes the controller write the variables by which processes find each other.
        spec["trainer"] = {field: trainer[field] for field in fields if field in trainer}
        spec["runtimeRef"] = {"apiGroup": _GROUP, "kind": TRAINING_RUNTIMES.kind, "name": metadata["name"]}
        head = {"apiVersion": TRAINING_RUNTIMES.api_version, "kind": TRAINING_RUNTIMES.kind}
        named = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
        return [(TRAINING_RUNTIMES, {**head, "metadata": named, "spec": resolved["runtime"]})]

    def read_status(self, status: Manifest, running_pods: int) -> State:
        """There is no condition for running: what runs is asked of the pods themselves."""
        return condition_state(status, _ENDS, running_pods)

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        """Its pods are those of a JobSet, which answers for them."""
        return "", 0


def _reference(spec: Manifest) -> tuple[str, str]:
    """Kind and name of the runtime."""
    reference = spec["runtimeRef"]
    return str(reference.get("kind") or "ClusterTrainingRuntime"), str(reference["name"])


def _warnings(spec: Manifest, groups: list[Manifest]) -> tuple[str, ...]:
    trainer = spec.get("trainer") or {}
    if trainer.get("numNodes") is not None and not any(map(training_runtime.trains, groups)):
        label = f"{training_runtime.STEP}: {training_runtime.TRAINER}"
        return (f"spec.trainer.numNodes has no effect: no group of the runtime has the label {label}",)
    return ()


def _read_list(value: Any, path: str, kind: type, faults: Faults) -> list[Any]:
    """The list; an empty one where there is none, or a wrong one."""
    if isinstance(value, list) and all(isinstance(each, kind) for each in value):
        return value
    if value is not None:
        faults.add(path, f"must be a list of {'texts' if kind is str else 'objects'}")
    return []


def _check_env(body: Manifest, path: str, faults: Faults) -> None:
    for number, entry in enumerate(_read_list(body.get("env"), f"{path}.env", dict, faults)):
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            faults.add(f"{path}.env[{number}].name", "is required")


def _check_patches(patches: Any, faults: Faults) -> None:
    """The shape of patches as far as groups; a patch that does not fit the pods is found when it is carried out."""
    path = "spec.runtimePatches"
    for number, patch in enumerate(_read_list(patches, path, dict, faults)):
        where = f"{path}[{number}].trainingRuntimeSpec"
        spec = faults.mapping(patch.get("trainingRuntimeSpec"), where)
        template = faults.mapping(spec.get("template"), f"{where}.template")
        faults.mapping(template.get("metadata"), f"{where}.template.metadata")
        jobset = faults.mapping(template.get("spec"), f"{where}.template.spec")
        listed = f"{where}.template.spec.replicatedJobs"
        for position, group in enumerate(_read_list(jobset.get("replicatedJobs"), listed, dict, faults)):
            place = f"{listed}[{position}]"
            if not isinstance(group.get("name"), str):
                faults.add(f"{place}.name", "is required")
            faults.mapping(group.get("template"), f"{place}.template")
