"""sparkoperator.k8s.io SparkApplication: a driver that makes its executors.

There are no pod templates: cores and memory are given in Spark's own words, and Spark asks for more memory than was given, for
what lives outside its heap. Executors wait for each other, never for the driver, without which there would be none.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from fleet.core import units
from fleet.kube.quantities import QuantityError
from fleet.kube.resources import SPARK_APPLICATIONS
from jobs.kinds import node_affinity
from jobs.kinds.base import Amounts, Faults, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.pods import read_metadata

_TYPES = ("Java", "Scala", "Python", "R")
_ON_THE_HEAP = ("Java", "Scala")
_MEMORY = re.compile(r"^(\d+)([kmgt]?)i?b?$", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_LEAST_OVERHEAD = 384 * 2**20
_AMOUNTS = re.compile(
    r"spark\.(dynamicAllocation\..*|executor\.instances|(driver|executor)\.(cores|memory|memoryOverhead(Factor)?|pyspark\.memory)"
    r"|(driver|executor)\.resource\..*|memory\.offHeap\..*"
    r"|kubernetes\.((driver|executor)\.(request|limit)\.cores|memoryOverheadFactor|local\.dirs\.tmpfs))"
)
"""Properties that change what the pods ask for, beside the fields that are counted: quota would be charged for less."""
_PHASES = {
    "RUNNING": Phase.RUNNING,
    "SUCCEEDING": Phase.RUNNING,
    "COMPLETED": Phase.SUCCEEDED,
    "FAILED": Phase.FAILED,
    "FAILING": Phase.RESTARTING,
    "PENDING_RERUN": Phase.RESTARTING,
    "SUBMISSION_FAILED": Phase.RESTARTING,
    "SUSPENDING": Phase.SUSPENDED,
    "SUSPENDED": Phase.SUSPENDED,
}


class SparkApplication(Kind):
    resource = SPARK_APPLICATIONS
    primary_roles = ("driver",)
    phase_words = {
        "applicationState.state": {
            Phase.CREATED: ("", "SUBMITTED", "UNKNOWN"),
            Phase.RUNNING: ("RUNNING", "SUCCEEDING"),
            Phase.RESTARTING: ("PENDING_RERUN", "FAILING", "SUBMISSION_FAILED"),
            Phase.SUSPENDED: ("SUSPENDED", "SUSPENDING"),
            Phase.SUCCEEDED: ("COMPLETED",),
            Phase.FAILED: ("FAILED", "SUBMISSION_FAILED"),
        }
    }
    ttl_path = ("spec", "timeToLiveSeconds")

    def goes_on_without(self, manifest: Manifest, role: str, left: int, lost: Collection[int]) -> bool:
        return role == "executor"

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        return f"{name}-driver", f"{name}-ui-svc"

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        if spec.get("type") is None:
            faults.add("spec.type", f"is required: one of {', '.join(_TYPES)}")
        faults.one_of(spec.get("type"), "spec.type", _TYPES)
        faults.one_of(spec.get("mode"), "spec.mode", ("cluster",))
        for name in ("sparkVersion", "mainApplicationFile"):
            if not spec.get(name):
                faults.add(f"spec.{name}", "is required")
        for name in faults.mapping(spec.get("sparkConf"), "spec.sparkConf"):
            if _AMOUNTS.fullmatch(str(name)):
                faults.add(
                    f"spec.sparkConf.{name}", "must not be set: give it in the fields of spec, which are counted"
                )
        executor = faults.mapping(spec.get("executor"), "spec.executor", required=True)
        count = faults.whole(executor.get("instances"), "spec.executor.instances", default=1)
        dynamic = faults.mapping(spec.get("dynamicAllocation"), "spec.dynamicAllocation")
        min_available = max(count, 1)
        if faults.flag(dynamic.get("enabled"), "spec.dynamicAllocation.enabled"):
            count, min_available = self._read_dynamic(dynamic, faults), 1
        faults.whole(spec.get("timeToLiveSeconds"), "spec.timeToLiveSeconds", default=0)
        driver = Role("driver", 1, self._read_pod(spec, "driver", faults))
        roles = (driver, Role("executor", count, self._read_pod(spec, "executor", faults)))
        suspended = faults.flag(spec.get("suspend"), "spec.suspend")
        return Reading(tuple(r for r in roles if r.replicas), suspended, tuple(faults.found), min_available)

    def _read_dynamic(self, dynamic: Manifest, faults: Faults) -> int:
        """How many executors there may be: what has to fit."""
        path = "spec.dynamicAllocation"
        least = faults.whole(dynamic.get("minExecutors"), f"{path}.minExecutors", default=0)
        first = faults.whole(dynamic.get("initialExecutors"), f"{path}.initialExecutors", default=least)
        most = faults.whole(dynamic.get("maxExecutors"), f"{path}.maxExecutors", default=0, at_least=1)
        if not most:
            faults.add(f"{path}.maxExecutors", "is required: without it the job may grow without end")
        elif not least <= first <= most:
            faults.add(f"{path}.initialExecutors", f"must be from {least} to {most}, not {first}")
        return most

    def _read_pod(self, spec: Manifest, role: str, faults: Faults) -> Amounts:
        path = f"spec.{role}"
        body = faults.mapping(spec.get(role), path, required=True)
        read_metadata(body, path, faults)
        if not (body.get("image") or spec.get("image")):
            faults.add("spec.image", "is required")
        try:
            cores = units.amounts({"cpu": str(body.get("coreRequest") or body.get("cores") or 1)})
        except QuantityError as e:
            faults.add(f"{path}.cores", str(e))
            cores = {}
        request = {**cores, "memory": self._read_memory(spec, body, path, faults), "pods": 1}
        pod = faults.mapping(
            faults.mapping(body.get("template"), f"{path}.template").get("spec"), f"{path}.template.spec"
        )
        if pod.get("resourceClaims"):
            detail = "is not supported for Spark's pods: their devices would be in no total and no quota. Use gpu"
            faults.add(f"{path}.template.spec.resourceClaims", detail)
        gpu = faults.mapping(body.get("gpu"), f"{path}.gpu")
        if gpu:
            number = faults.whole(gpu.get("quantity"), f"{path}.gpu.quantity", default=0)
            request[str(gpu.get("name") or "nvidia.com/gpu")] = number
        return request

    def _read_memory(self, spec: Manifest, body: Manifest, path: str, faults: Faults) -> int:
        heap = _bytes(body.get("memory") or "1g", f"{path}.memory", faults)
        if body.get("memoryOverhead"):
            return heap + _bytes(body["memoryOverhead"], f"{path}.memoryOverhead", faults)
        factor = spec.get("memoryOverheadFactor") or (0.1 if spec.get("type") in _ON_THE_HEAP else 0.4)
        try:
            return heap + max(_LEAST_OVERHEAD, math.ceil(heap * float(factor)))
        except (TypeError, ValueError, OverflowError):
            faults.add("spec.memoryOverheadFactor", f"must be a number, not {factor!r}")
            return heap

    def set_defaults(self, manifest: Manifest) -> None:
        for role in ("driver", "executor"):
            body = manifest["spec"][role]
            for field in ("labels", "annotations"):
                body[field] = body.get(field) or {}
            body["env"] = body.get("env") or []

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        """Driver and executor seen as pod templates; their labels and annotations are the manifest's own."""
        spec = manifest["spec"]
        for role in ("driver", "executor"):
            body = spec[role]
            pod = {name: body[name] for name in ("serviceAccount", "schedulerName") if name in body}
            pod["volumes"] = spec.get("volumes") or []
            env = body.get("env")
            pod["containers"] = [{"env": [] if env is None else env, "envFrom": body.get("envFrom") or []}]
            yield role, {"metadata": _metadata(body), "spec": pod}

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        executor = manifest["spec"]["executor"]
        yield "executor", {"metadata": _metadata(executor), "spec": executor}

    def keep_to_nodes(self, manifest: Manifest, labels: Mapping[str, Mapping[str, str]]) -> None:
        """By the selector of driver and executor, which replaces the one they share."""
        spec = manifest["spec"]
        for role, stated in labels.items():
            own = spec[role].get("nodeSelector") or spec.get("nodeSelector") or {}
            spec[role]["nodeSelector"] = {**own, **stated}

    def keep_off_nodes(self, manifest: Manifest, hostnames: Sequence[str]) -> None:
        """By the affinity of driver and executor, which the operator hands on to their pods."""
        for role in ("driver", "executor"):
            node_affinity.require(manifest["spec"][role], node_affinity.none_of(hostnames))

    def scheduler(self, manifest: Manifest) -> str:
        return str(manifest["spec"].get("batchScheduler") or "")

    def read_status(self, status: Manifest, running_pods: int) -> State:
        state = status.get("applicationState") or {}
        phase = _PHASES.get(str(state.get("state") or ""), Phase.CREATED)
        times = (str(status.get(name) or "") for name in ("lastSubmissionAttemptTime", "terminationTime"))
        return State(phase, str(state.get("errorMessage") or ""), *times)

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        index = labels.get("spark-exec-id", "0")
        return labels.get("spark-role", ""), int(index) if index.isdigit() else 0


def _metadata(body: Manifest) -> Manifest:
    """The very labels and annotations of the driver or executor, so that marks reach them."""
    return {field: {} if body.get(field) is None else body[field] for field in ("labels", "annotations")}


def _bytes(value: object, path: str, faults: Faults) -> int:
    """Bytes of an amount of memory as a JVM takes it: ``512m``, ``4g``."""
    match = _MEMORY.match(str(value))
    if not match:
        faults.add(path, f"must be memory as Spark writes it, like 512m or 4g, not {value!r}")
        return 0
    return int(match[1]) * _UNITS[match[2].lower()]
