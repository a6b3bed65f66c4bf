"""elastic.iml.github.io ElasticJob (DLRover): a master pod that makes the workers, parameter servers, chief and evaluators.

Its status is nested: ``status.phase`` beside ``status.status.conditions``. ``restartCounts``, as some write it, is no field
and would be dropped silently: it is sent as ``restartCount``. A master that is not described is described when sent, with
the image of the workers, which have the framework in them: so that it carries the fleet's marks like every other pod.
"""

from collections.abc import Iterator

from fleet.kube.resources import ELASTIC_JOBS
from jobs.kinds.base import Faults, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.kubeflow import exactly_one, read_replicas

_KEY = "replicaSpecs"
_MASTER = "dlrover-master"
_ROLES = (_MASTER, "chief", "ps", "worker", "evaluator")
_MASTER_ASKS = {"cpu": "1", "memory": "2Gi"}
_MASTER_REQUEST = {"cpu": 1000, "memory": 2 * 2**30, "pods": 1}
_STRATEGIES = ("AllreduceStrategy", "ParameterServerStrategy", "CustomStrategy", "Local")
_PREFIX = "elasticjob.dlrover/"
_PHASES = {"Pending": Phase.CREATED, **{phase.value: phase for phase in Phase}}


class ElasticJob(Kind):
    resource = ELASTIC_JOBS
    chiefs = ("chief", "worker", _MASTER)

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        roles = read_replicas(spec, _KEY, _ROLES, faults, container="")
        exactly_one(roles, _MASTER, f"spec.{_KEY}.{_MASTER}", faults)
        others = tuple(role for role in roles if role.name != _MASTER)
        if not others and not faults.found:
            faults.add(f"spec.{_KEY}", "must ask for at least one pod beside the master")
        misspelt = []
        for name, replica in faults.mapping(spec.get(_KEY), f"spec.{_KEY}").items():
            if isinstance(replica, dict) and "restartCounts" in replica:
                misspelt.append(f"spec.{_KEY}.{name}.restartCounts is taken for restartCount, the name of the field")
            for field in ("restartCount", "restartCounts"):
                given = replica.get(field) if isinstance(replica, dict) else None
                faults.whole(given, f"spec.{_KEY}.{name}.{field}", default=3)
        faults.one_of(spec.get("distributionStrategy") or None, "spec.distributionStrategy", _STRATEGIES)
        faults.one_of(spec.get("optimizeMode") or None, "spec.optimizeMode", ("single-job", "cluster", "manual"))
        suspended = faults.flag(spec.get("suspend"), "spec.suspend")
        master = tuple(role for role in roles if role.name == _MASTER) or (Role(_MASTER, 1, _MASTER_REQUEST),)
        together = sum(role.replicas for role in others)
        return Reading(master + others, suspended, tuple(faults.found), together, tuple(misspelt))

    def complete(self, manifest: Manifest) -> None:
        replicas = manifest["spec"][_KEY]
        for replica in replicas.values():
            if (count := replica.pop("restartCounts", None)) is not None:
                replica.setdefault("restartCount", count)
        if not any(name.lower() == _MASTER for name in replicas):
            worker = next(iter(replicas.values()))["template"]["spec"]["containers"][0]
            container = {"name": "main", "image": worker["image"], "resources": {"requests": dict(_MASTER_ASKS)}}
            template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
            replicas[_MASTER] = {"replicas": 1, "template": template}

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for role, replica in manifest["spec"][_KEY].items():
            yield role.lower(), replica["template"]

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        return ((role, template) for role, template in self.templates(manifest) if role != _MASTER)

    def read_status(self, status: Manifest, running_pods: int) -> State:
        inner = status.get("status") or {}
        phase = _PHASES.get(str(status.get("phase") or ""), Phase.CREATED)
        true = [each for each in inner.get("conditions") or [] if each.get("status") == "True"]
        words: Manifest = next((each for each in true if each.get("type") == phase.value), {})
        message = str(words.get("message") or words.get("reason") or "")
        return State(phase, message, str(inner.get("startTime") or ""), str(inner.get("completionTime") or ""))

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        """A replaced pod has a new id and keeps its rank."""
        rank = labels.get(f"{_PREFIX}rank-index") or labels.get(f"{_PREFIX}replica-index") or "0"
        return labels.get(f"{_PREFIX}replica-type", ""), int(rank) if rank.isdigit() else 0
