"""batch.volcano.sh Job: tasks of pods that Volcano starts together.

It has no field to suspend it: a Command object asks Volcano to abort it, and the fleet remembers by annotation. Its operator
makes the PodGroup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fleet.kube.resources import VOLCANO_COMMANDS, VOLCANO_JOBS, Resource
from jobs.core.resizing import min_available, stated_bounds
from jobs.core.resizing.bounds import Bounds
from jobs.kinds.base import (
    Faults,
    Kind,
    Manifest,
    Phase,
    Reading,
    Role,
    State,
    is_suspended_by_annotation,
    suspend_by_annotation,
)
from jobs.kinds.pods import read_template

_TASK, _INDEX = "volcano.sh/task-spec", "volcano.sh/task-index"
_PHASES = {
    "Running": Phase.RUNNING,
    "Restarting": Phase.RESTARTING,
    "Completing": Phase.RUNNING,
    "Completed": Phase.SUCCEEDED,
    "Aborting": Phase.SUSPENDED,
    "Aborted": Phase.SUSPENDED,
    "Terminating": Phase.FAILED,
    "Terminated": Phase.FAILED,
    "Failed": Phase.FAILED,
}


class VolcanoJob(Kind):
    resource = VOLCANO_JOBS
    own_gang = True
    ends_last = True
    how_to_resize = f"state its tasks' bounds by {stated_bounds.FIELD}, such as worker=1:8"
    phase_words = {
        "state.phase": {
            Phase.CREATED: ("Pending",),
            Phase.RUNNING: ("Running", "Completing"),
            Phase.RESTARTING: ("Restarting",),
            Phase.SUSPENDED: ("Aborted", "Aborting"),
            Phase.SUCCEEDED: ("Completed",),
            Phase.FAILED: ("Failed", "Terminated", "Terminating"),
        }
    }
    primary_roles = ("master", "launcher", "chief", "ps")

    def primary_role(self, roles: Iterable[str]) -> str:
        names = list(roles)
        return super().primary_role(names) or next(iter(names), "")

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        return [f"{name}-{role.name.lower()}-{role.replicas - 1}" for role in roles]

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        listed = spec.get("tasks")
        if not isinstance(listed, list) or not listed:
            faults.add("spec.tasks", "must list at least one task")
            listed = []
        roles = tuple(self._read_task(each, i, faults) for i, each in enumerate(listed))
        names = [role.name for role in roles]
        for i, name in enumerate(names):
            if name in names[:i]:
                faults.add(f"spec.tasks[{i}].name", f"{name!r} is given twice")
        pods = sum(role.replicas for role in roles)
        if not pods and not faults.found:
            faults.add("spec.tasks", "must ask for at least one pod")
        least = faults.whole(spec.get("minAvailable"), "spec.minAvailable", default=pods)
        if least > pods:
            faults.add(
                "spec.minAvailable", f"must be at most the number of pods ({pods}), not {least}: it never starts"
            )
        faults.whole(spec.get("maxRetry"), "spec.maxRetry", default=3)
        faults.whole(spec.get("ttlSecondsAfterFinished"), "spec.ttlSecondsAfterFinished", default=0)
        faults.whole(spec.get("minSuccess"), "spec.minSuccess", default=1, at_least=1)
        if not faults.found:
            stated_bounds.check(manifest, {role.name: role.replicas for role in roles}, faults)
        return Reading(
            tuple(r for r in roles if r.replicas), is_suspended_by_annotation(manifest), tuple(faults.found), least
        )

    def _read_task(self, entry: object, number: int, faults: Faults) -> Role:
        path = f"spec.tasks[{number}]"
        task = faults.mapping(entry, path, required=True)
        replicas = faults.whole(task.get("replicas"), f"{path}.replicas", default=1)
        least = faults.whole(task.get("minAvailable"), f"{path}.minAvailable", default=replicas)
        if least > replicas:
            faults.add(f"{path}.minAvailable", f"must be at most replicas ({replicas}), not {least}")
        request = read_template(task.get("template"), f"{path}.template", faults)
        return Role(_task_name(task, number), replicas, request)

    def bounds(self, manifest: Manifest) -> Mapping[str, Bounds]:
        paths = {_task_name(task, n): f"spec.tasks[{n}].replicas" for n, task in enumerate(manifest["spec"]["tasks"])}
        stated = stated_bounds.read(manifest, Faults())
        return {role: Bounds(*limits, stated_bounds.FIELD, paths[role]) for role, limits in stated.items()}

    def resize(self, manifest: Manifest, role: str, replicas: int) -> None:
        """What has to be available at once goes along where it was all there was, and is never more than there is."""
        spec, bounds, known = manifest["spec"], self.bounds(manifest), min_available.read(manifest)
        before, kept = sum(_replicas(task) for task in spec["tasks"]), dict[str, int]()
        for number, task in enumerate(spec["tasks"]):
            name = _task_name(task, number)
            after = replicas if name == role else _replicas(task)
            default = bounds[name].least if name in bounds else 0
            kept |= _follow(task, f"task {name}", (_replicas(task), after), default, known)
            if name == role:
                task["replicas"] = replicas
        after = sum(_replicas(task) for task in spec["tasks"])
        min_available.write(manifest, kept | _follow(spec, "spec", (before, after), 0, known))

    def set_defaults(self, manifest: Manifest) -> None:
        """Volcano takes all replicas of a task for its minAvailable where none is stated, and refuses fewer from then on."""
        spec, bounds = manifest["spec"], self.bounds(manifest)
        if bounds:
            spec.setdefault("minAvailable", sum(_replicas(task) for task in spec["tasks"]))
        for number, task in enumerate(spec["tasks"]):
            if (limits := bounds.get(_task_name(task, number))) is not None:
                task.setdefault("minAvailable", limits.least)

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for number, task in enumerate(manifest["spec"]["tasks"]):
            yield _task_name(task, number), task["template"]

    def read_status(self, status: Manifest, running_pods: int) -> State:
        state = status.get("state") or {}
        phase = _PHASES.get(str(state.get("phase") or ""), Phase.CREATED)
        return State(phase, str(state.get("message") or state.get("reason") or ""))

    def suspend(self, manifest: Manifest, on: bool) -> None:
        suspend_by_annotation(manifest, on)

    def suspend_command(self, copy: Manifest) -> tuple[Resource, Manifest]:
        metadata = copy["metadata"]
        owner = {"name": metadata["name"], "uid": metadata["uid"], "controller": True}
        target = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **owner}
        body = {
            "apiVersion": VOLCANO_COMMANDS.api_version,
            "kind": VOLCANO_COMMANDS.kind,
            "metadata": {
                "name": f"{metadata['name']}-abort",
                "namespace": metadata["namespace"],
                "ownerReferences": [target],
            },
            "action": "AbortJob",
            "target": target,
        }
        return VOLCANO_COMMANDS, body

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        if "volcano.sh/job-name" not in labels:
            return "", 0
        index = labels.get(_INDEX, "0")
        return labels.get(_TASK, ""), int(index) if index.isdigit() else 0


def _task_name(task: Manifest, number: int) -> str:
    return str(task.get("name") or f"default{number}")


def _replicas(task: Manifest) -> int:
    return 1 if task.get("replicas") is None else int(task["replicas"])


def _follow(
    target: Manifest, name: str, sizes: tuple[int, int], default: int, known: Mapping[str, int]
) -> dict[str, int]:
    """Keeps ``minAvailable`` of a job or a task in step with its number of pods. Returns what is to be remembered of it."""
    least, (before, after) = target.get("minAvailable"), sizes
    if least is None:
        return {}
    stated = min_available.stated(least, before, default, known.get(name))
    target["minAvailable"] = min(stated, after)
    is_said = min_available.implied(target["minAvailable"], after, default) == stated
    return {} if is_said else {name: stated}
