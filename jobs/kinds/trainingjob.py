"""kai.alibabacloud.com TrainingJob (et-operator): elastic Horovod, a launcher that starts once its workers are ready.

Suspending is an annotation, and the public operator knows no way back from it: a resumed job is a new copy. While a job
runs, its ``replicas`` mean nothing to the operator: it is resized by an object ScaleIn or ScaleOut each time.
"""

from collections.abc import Iterator, Mapping, Sequence

from fleet.kube.resources import SCALE_INS, SCALE_OUTS, TRAINING_JOBS
from jobs.core.resizing.bounds import Bounds
from jobs.kinds import kubeflow
from jobs.kinds.base import (
    Faults,
    Kind,
    Manifest,
    Phase,
    Reading,
    Role,
    Scalers,
    State,
    is_suspended_by_annotation,
    suspend_by_annotation,
)

_KEY = "etReplicaSpecs"
_GROUP, _ROLE, _INDEX = "group-name", "training-job-role", "replica-index"
_SCALED = ("ScaleSucceeded", "ScaleFailed")
_SCALED_WITHIN_S = 300
"""How long added workers may take to run; the operator removes them after that, and would after 60 s by itself."""
_PHASES = {"Scaling": Phase.RUNNING, **{phase.value: phase for phase in Phase}}


class TrainingJob(Kind):
    resource = TRAINING_JOBS
    primary_roles = ("launcher",)
    how_to_resize = f"state minReplicas and maxReplicas of spec.{_KEY}.worker"
    scalers = Scalers(SCALE_INS, SCALE_OUTS)
    phase_words = {"phase": {phase: (phase.value,) for phase in Phase} | {Phase.RUNNING: ("Running", "Scaling")}}

    @property
    def scale(self) -> Mapping[str, str]:
        """In the fleet alone: the operator defines none."""
        return {
            "specReplicasPath": f".spec.{_KEY}.worker.replicas",
            "statusReplicasPath": ".status.convoy.size.worker.replicas",
        }

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        return [
            f"{name}-launcher",
            *(f"{name}-worker-{role.replicas - 1}" for role in roles if role.name.lower() == "worker"),
        ]

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        roles = kubeflow.read_replicas(spec, _KEY, ("Launcher", "Worker"), faults, container="")
        counts = {role.name: role.replicas for role in roles}
        for name in ("launcher", "worker"):
            if not counts.get(name) and not faults.found:
                faults.add(f"spec.{_KEY}.{name}", "is required, with at least one replica")
        kubeflow.exactly_one(roles, "launcher", f"spec.{_KEY}.launcher", faults)
        self._read_bounds(spec, counts.get("worker", 0), faults)
        faults.one_of(spec.get("cleanPodPolicy") or None, "spec.cleanPodPolicy", kubeflow.CLEAN_POD_POLICIES)
        faults.one_of(spec.get("launcherAttachMode") or None, "spec.launcherAttachMode", ("ssh", "kubexec"))
        faults.one_of(spec.get("restartPolicy") or None, "spec.restartPolicy", ("Never", "OnFailure"))
        faults.whole(spec.get("backoffLimit"), "spec.backoffLimit", default=6)
        faults.whole(spec.get("ttlSecondsAfterFinished"), "spec.ttlSecondsAfterFinished", default=0)
        faults.whole(spec.get("slotsPerWorker"), "spec.slotsPerWorker", default=1, at_least=1)
        return Reading(roles, is_suspended_by_annotation(manifest), tuple(faults.found), counts.get("worker", 0))

    def _read_bounds(self, spec: Manifest, workers: int, faults: Faults) -> None:
        if faults.found:
            return
        worker = next(body for name, body in spec[_KEY].items() if name.lower() == "worker")
        path = f"spec.{_KEY}.worker"
        least = faults.whole(worker.get("minReplicas"), f"{path}.minReplicas", default=workers, at_least=1)
        most = faults.whole(worker.get("maxReplicas"), f"{path}.maxReplicas", default=workers, at_least=1)
        if not least <= workers <= most:
            faults.add(f"{path}.replicas", f"must be from minReplicas ({least}) to maxReplicas ({most}), not {workers}")

    def bounds(self, manifest: Manifest) -> Mapping[str, Bounds]:
        role, worker = _worker(manifest)
        least, most = worker.get("minReplicas"), worker.get("maxReplicas")
        if least is None or most is None:
            return {}
        path = f"spec.{_KEY}.{role}"
        return {"worker": Bounds(least, most, f"{path}.minReplicas and maxReplicas", f"{path}.replicas")}

    def resize(self, manifest: Manifest, role: str, replicas: int) -> None:
        """Of a copy, this is the size that the operator begins with when the job starts over; one that runs needs a scaler."""
        _worker(manifest)[1]["replicas"] = replicas

    def scaler_spec(self, name: str, pods: Sequence[str], wanted: int) -> Manifest:
        """Those that leave are named: given their number alone, the operator would take the last of those that are there."""
        leaving = {"toDelete": {"podNames": list(pods[wanted:])}}
        change = leaving if wanted < len(pods) else {"toAdd": {"count": wanted - len(pods)}}
        return {"selector": {"name": name}, "timeout": _SCALED_WITHIN_S, **change}

    def is_carried_out(self, scaler: Manifest) -> bool:
        conditions = (scaler.get("status") or {}).get("conditions") or []
        return any(each.get("type") in _SCALED and each.get("status") == "True" for each in conditions)

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for role, replica in manifest["spec"][_KEY].items():
            yield role.lower(), replica["template"]

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        return ((role, template) for role, template in self.templates(manifest) if role == "worker")

    def read_status(self, status: Manifest, running_pods: int) -> State:
        phase = _PHASES.get(str(status.get("phase") or ""), Phase.CREATED)
        last = (status.get("conditions") or [{}])[-1]
        message = str(last.get("message") or last.get("reason") or "")
        return State(phase, message, str(status.get("startTime") or ""), str(status.get("completionTime") or ""))

    def suspend(self, manifest: Manifest, on: bool) -> None:
        suspend_by_annotation(manifest, on)

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        if labels.get(_GROUP) != self.resource.group:
            return "", 0
        index = labels.get(_INDEX, "0")
        return labels.get(_ROLE, ""), int(index) if index.isdigit() else 0


def _worker(manifest: Manifest) -> tuple[str, Manifest]:
    """The role of the workers as the manifest spells it, and what it says of them."""
    return next((name, spec) for name, spec in manifest["spec"][_KEY].items() if name.lower() == "worker")
