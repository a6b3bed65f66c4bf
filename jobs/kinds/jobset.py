"""jobset.x-k8s.io JobSet: several groups of like batch Jobs, started and judged as one; each group is a role."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fleet.kube.resources import JOB_SETS
from jobs.kinds.base import Faults, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.pods import read_metadata, read_template

_PREFIX = "jobset.sigs.k8s.io/"
_INDEX = "batch.kubernetes.io/job-completion-index"
_ENDS = (("Failed", Phase.FAILED), ("Completed", Phase.SUCCEEDED), ("Suspended", Phase.SUSPENDED))


class JobSet(Kind):
    resource = JOB_SETS
    primary_roles = ()
    phase_conditions = {**Kind.phase_conditions, Phase.SUCCEEDED: "Completed"}
    phase_words = {"terminalState": {Phase.SUCCEEDED: ("Completed",), Phase.FAILED: ("Failed",)}}

    def primary_role(self, roles: Iterable[str]) -> str:
        """The first group, as JobSet has it where no coordinator is named."""
        return next(iter(roles), "")

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        return [f"{name}-{role.name}-0-{role.replicas - 1}-00000" for role in roles]

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        roles = read_groups(spec.get("replicatedJobs"), "spec.replicatedJobs", faults)
        names = [role.name for role in roles]
        success = faults.mapping(spec.get("successPolicy"), "spec.successPolicy")
        faults.one_of(success.get("operator"), "spec.successPolicy.operator", ("All", "Any"))
        targets = success.get("targetReplicatedJobs") or []
        for target in targets if isinstance(targets, list) else ():
            faults.one_of(target, "spec.successPolicy.targetReplicatedJobs", tuple(names))
        failure = faults.mapping(spec.get("failurePolicy"), "spec.failurePolicy")
        faults.whole(failure.get("maxRestarts"), "spec.failurePolicy.maxRestarts", default=0)
        faults.whole(spec.get("ttlSecondsAfterFinished"), "spec.ttlSecondsAfterFinished", default=0)
        manager = ("jobset.sigs.k8s.io/jobset-controller",)
        faults.one_of(spec.get("managedBy") or None, "spec.managedBy", manager)
        running_roles = tuple(role for role in roles if role.replicas)
        if not running_roles and not faults.found:
            faults.add("spec.replicatedJobs", "must ask for at least one pod")
        gang = set() if faults.found else {group["name"] for group in gang_groups(spec["replicatedJobs"])}
        min_available = sum(role.replicas for role in running_roles if role.name in gang)
        return Reading(
            running_roles, faults.flag(spec.get("suspend"), "spec.suspend"), tuple(faults.found), min_available
        )

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for group in manifest["spec"]["replicatedJobs"]:
            yield group["name"], group["template"]["spec"]["template"]

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for group in gang_groups(manifest["spec"]["replicatedJobs"]):
            yield group["name"], group["template"]["spec"]["template"]

    def drop_ttl(self, manifest: Manifest) -> None:
        """Of its Jobs as well: one that were deleted when it has ended would be made, and run, once more."""
        super().drop_ttl(manifest)
        for group in manifest["spec"]["replicatedJobs"]:
            group["template"]["spec"].pop("ttlSecondsAfterFinished", None)

    def read_status(self, status: Manifest, running_pods: int) -> State:
        """There is no condition for running: what runs is asked of the pods themselves."""
        return condition_state(status, _ENDS, running_pods)

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        """The index is that of the pod in a group of one Job, of the Job in a group of several."""
        job, pod = labels.get(f"{_PREFIX}job-index", "0"), labels.get(_INDEX, "0")
        index = job if job != "0" else pod
        return labels.get(f"{_PREFIX}replicatedjob-name", ""), int(index) if index.isdigit() else 0


def read_groups(listed: object, path: str, faults: Faults) -> list[Role]:
    """One role for each group of Jobs."""
    if not isinstance(listed, list) or not listed:
        faults.add(path, "must list at least one replicated job")
        return []
    roles = [_read_group(group, f"{path}[{number}]", faults) for number, group in enumerate(listed)]
    names = [role.name for role in roles]
    for number, name in enumerate(names):
        if name in names[:number]:
            faults.add(f"{path}[{number}].name", f"{name!r} is given twice")
    return roles


def _read_group(entry: object, path: str, faults: Faults) -> Role:
    group = faults.mapping(entry, path, required=True)
    if not isinstance(group.get("name"), str) or not group["name"]:
        faults.add(f"{path}.name", "is required")
    for number, need in enumerate(_needs(group)):
        faults.mapping(need, f"{path}.dependsOn[{number}]", required=True)
    jobs = faults.whole(group.get("replicas"), f"{path}.replicas", default=1)
    template = faults.mapping(group.get("template"), f"{path}.template", required=True)
    read_metadata(template.get("metadata"), f"{path}.template.metadata", faults)
    job = faults.mapping(template.get("spec"), f"{path}.template.spec", required=True)
    parallelism = faults.whole(job.get("parallelism"), f"{path}.template.spec.parallelism", default=1)
    completions = faults.whole(job.get("completions"), f"{path}.template.spec.completions", default=parallelism)
    where = f"{path}.template.spec.template"
    request = read_template(job.get("template"), where, faults, restart=("", "Never", "OnFailure"))
    return Role(str(group.get("name") or ""), jobs * min(parallelism, completions), request)


def gang_groups(groups: Sequence[Manifest]) -> list[Manifest]:
    """Groups whose pods run at the same time and start together.

    Not those that end before another group begins, and not those that begin once another group is ready: pods that wait in one
    gang with them would wait for ever.
    """
    ended = {need.get("name") for group in groups for need in _needs(group) if need.get("status") == "Complete"}
    first = [group for group in groups if all(need.get("status") != "Ready" for need in _needs(group))]
    return [group for group in first if group["name"] not in ended] or list(groups)


def _needs(group: Manifest) -> list[Any]:
    needs = group.get("dependsOn")
    return needs if isinstance(needs, list) else []


def condition_state(status: Manifest, ends: Iterable[tuple[str, Phase]], running_pods: int) -> State:
    """The phase of the first condition of ``ends`` that is true; else whether pods run."""
    true = {c.get("type"): c for c in status.get("conditions") or [] if c.get("status") == "True"}
    for condition, phase in ends:
        if words := true.get(condition):
            ended = str(words.get("lastTransitionTime") or "") if phase is not Phase.SUSPENDED else ""
            return State(phase, str(words.get("message") or words.get("reason") or ""), completed_at=ended)
    return State(Phase.RUNNING if running_pods else Phase.CREATED)
