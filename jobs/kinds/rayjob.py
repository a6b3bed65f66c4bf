"""ray.io RayJob: a head, groups of workers and, by default, a small pod that submits the program to them.

The submitter comes when the cluster is ready, so nothing waits for it; it is described when sent, so that it carries the
fleet's marks. KubeRay refuses to suspend a job that keeps its cluster: one that does not say gives it up at its end.
"""

from collections.abc import Iterator, Mapping, Sequence

from fleet.core import units
from fleet.kube.resources import RAY_CLUSTERS, RAY_JOBS, Resource
from jobs.core.resizing.bounds import Bounds
from jobs.kinds.base import Amounts, Faults, Kind, Manifest, Phase, Reading, Role, State, set_metadata
from jobs.kinds.pods import read_template

_MODES = ("K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
_SUBMITTER = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
_AUTOSCALER = {"cpu": 500, "memory": 512 * 2**20}
_ROLE = "convoy.dev/role"
_SCHEDULER = "ray.io/scheduler-name"
_PHASES = {
    "Running": Phase.RUNNING,
    "Complete": Phase.SUCCEEDED,
    "Failed": Phase.FAILED,
    "ValidationFailed": Phase.FAILED,
    "Suspending": Phase.SUSPENDED,
    "Suspended": Phase.SUSPENDED,
    "Retrying": Phase.RESTARTING,
}


class RayJob(Kind):
    resource = RAY_JOBS
    primary_roles = ("head",)
    ends_any = True
    how_to_resize = (
        "state minReplicas and maxReplicas of a worker group of one host a replica, without enableInTreeAutoscaling"
    )
    phase_words = {
        "jobDeploymentStatus": {
            Phase.CREATED: ("Initializing", "Waiting"),
            Phase.RUNNING: ("Running",),
            Phase.RESTARTING: ("Retrying",),
            Phase.SUSPENDED: ("Suspended", "Suspending"),
            Phase.SUCCEEDED: ("Complete",),
            Phase.FAILED: ("Failed", "ValidationFailed", "Complete"),
        },
        "jobStatus": {
            Phase.CREATED: ("", "PENDING"),
            Phase.RUNNING: ("RUNNING", "PENDING"),
            Phase.SUSPENDED: ("", "STOPPED"),
            Phase.SUCCEEDED: ("SUCCEEDED",),
            Phase.FAILED: ("FAILED", "STOPPED"),
        },
    }

    def ttl_s(self, manifest: Manifest) -> int | None:
        """KubeRay means the cluster by it, not the job; the fleet gives the cluster up at the end of the job."""
        return None

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        """KubeRay takes names of 47 letters: the cluster's own name and the Service of its head are longer by 16."""
        return (f"{name}-000000-head-svc",)

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        mode = spec.get("submissionMode") or _MODES[0]
        faults.one_of(mode, "spec.submissionMode", _MODES)
        if not spec.get("entrypoint") and mode != "InteractiveMode":
            faults.add("spec.entrypoint", "is required: the program to run")
        if spec.get("clusterSelector"):
            faults.add("spec.clusterSelector", "names a cluster the fleet did not place: give rayClusterSpec instead")
        faults.whole(spec.get("backoffLimit"), "spec.backoffLimit", default=0)
        faults.whole(spec.get("ttlSecondsAfterFinished"), "spec.ttlSecondsAfterFinished", default=0)
        cluster = faults.mapping(spec.get("rayClusterSpec"), "spec.rayClusterSpec", required=True)
        roles = (self._read_head(cluster, mode, faults), *self._read_groups(cluster, faults))
        min_available = sum(role.replicas for role in roles)
        if mode == _MODES[0]:
            request = {**units.amounts(_SUBMITTER["requests"]), "pods": 1}
            if template := spec.get("submitterPodTemplate"):
                request = read_template(template, "spec.submitterPodTemplate", faults)
            roles = (*roles, Role("submitter", 1, request))
        suspended = faults.flag(spec.get("suspend"), "spec.suspend")
        if suspended and not faults.flag(spec.get("shutdownAfterJobFinishes", True), "spec.shutdownAfterJobFinishes"):
            faults.add("spec.suspend", "needs shutdownAfterJobFinishes: true, for KubeRay refuses it otherwise")
        return Reading(roles, suspended, tuple(faults.found), min_available)

    def _read_head(self, cluster: Manifest, mode: object, faults: Faults) -> Role:
        path = "spec.rayClusterSpec.headGroupSpec"
        head = faults.mapping(cluster.get("headGroupSpec"), path, required=True)
        beside: list[Amounts] = [read_template(head.get("template"), f"{path}.template", faults)]
        if faults.flag(cluster.get("enableInTreeAutoscaling"), "spec.rayClusterSpec.enableInTreeAutoscaling"):
            beside.append(_AUTOSCALER)
        if mode == "SidecarMode":
            beside.append(units.amounts(_SUBMITTER["requests"]))
        return Role("head", 1, units.plus(beside))

    def _read_groups(self, cluster: Manifest, faults: Faults) -> Iterator[Role]:
        listed = cluster.get("workerGroupSpecs") or []
        if not isinstance(listed, list):
            faults.add("spec.rayClusterSpec.workerGroupSpecs", "must be a list of groups")
            return
        names = {"head", "submitter"}
        for number, entry in enumerate(listed):
            path = f"spec.rayClusterSpec.workerGroupSpecs[{number}]"
            group = faults.mapping(entry, path, required=True)
            name = str(group.get("groupName") or "")
            if not name or name in names:
                faults.add(f"{path}.groupName", f"must be a name of its own, not {name!r}")
            names.add(name)
            replicas = faults.whole(group.get("replicas"), f"{path}.replicas", default=1)
            hosts = faults.whole(group.get("numOfHosts"), f"{path}.numOfHosts", default=1, at_least=1)
            least = faults.whole(group.get("minReplicas"), f"{path}.minReplicas", default=0)
            most = faults.whole(group.get("maxReplicas"), f"{path}.maxReplicas", default=2**31 - 1)
            if not least <= replicas <= most:
                faults.add(f"{path}.replicas", f"must be from minReplicas to maxReplicas, not {replicas}")
            request = read_template(group.get("template"), f"{path}.template", faults)
            if replicas:
                yield Role(name, replicas * hosts, request)

    def bounds(self, manifest: Manifest) -> Mapping[str, Bounds]:
        """Of groups whose replicas are single pods; where Ray's own autoscaler decides on them, Convoy does not."""
        cluster = manifest["spec"]["rayClusterSpec"]
        if cluster.get("enableInTreeAutoscaling"):
            return {}
        return {
            group["groupName"]: Bounds(max(least, 1), most, f"{path}.minReplicas and maxReplicas", f"{path}.replicas")
            for number, group in enumerate(cluster.get("workerGroupSpecs") or [])
            if (least := group.get("minReplicas")) is not None
            and (most := group.get("maxReplicas")) is not None
            and (group.get("numOfHosts") or 1) == 1
            for path in [f"spec.rayClusterSpec.workerGroupSpecs[{number}]"]
        }

    def resize(self, manifest: Manifest, role: str, replicas: int) -> None:
        """Of a copy, this is what a cluster for another try begins with; the one that runs is `followed`."""
        _resize_group(manifest["spec"]["rayClusterSpec"], role, replicas)

    def followed(self, copy: Manifest) -> tuple[Resource, str] | None:
        name = (copy.get("status") or {}).get("rayClusterName")
        return (RAY_CLUSTERS, str(name)) if name else None

    def resize_followed(self, made: Manifest, role: str, replicas: int) -> None:
        _resize_group(made["spec"], role, replicas)

    def scheduler(self, manifest: Manifest) -> str:
        return str((manifest["metadata"].get("labels") or {}).get(_SCHEDULER) or "")

    def set_defaults(self, manifest: Manifest) -> None:
        spec = manifest["spec"]
        spec.setdefault("shutdownAfterJobFinishes", True)
        if (spec.get("submissionMode") or _MODES[0]) != _MODES[0]:
            return
        head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
        container = {"name": "ray-job-submitter", "image": head["image"], "resources": _SUBMITTER}
        usual = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec["submitterPodTemplate"] = spec.get("submitterPodTemplate") or usual
        set_metadata(spec["submitterPodTemplate"], "labels", {_ROLE: "submitter"})

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        yield from self.gang_templates(manifest)
        if submitter := manifest["spec"].get("submitterPodTemplate"):
            yield "submitter", submitter

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        cluster = manifest["spec"]["rayClusterSpec"]
        yield "head", cluster["headGroupSpec"]["template"]
        for group in cluster.get("workerGroupSpecs") or []:
            yield group["groupName"], group["template"]

    def read_status(self, status: Manifest, running_pods: int) -> State:
        deployed = str(status.get("jobDeploymentStatus") or "")
        phase = _PHASES.get(deployed, Phase.CREATED)
        if phase is Phase.SUCCEEDED and status.get("jobStatus") == "FAILED":
            phase = Phase.FAILED
        message = str(status.get("message") or status.get("reason") or "")
        return State(phase, message, str(status.get("startTime") or ""), str(status.get("endTime") or ""))

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        if role := labels.get(_ROLE):
            return role, 0
        node = labels.get("ray.io/node-type", "")
        index = labels.get("ray.io/replica-index", "0")
        return (labels.get("ray.io/group", "") if node == "worker" else node), int(index) if index.isdigit() else 0


def _resize_group(cluster: Manifest, name: str, replicas: int) -> None:
    next(group for group in cluster["workerGroupSpecs"] if group["groupName"] == name)["replicas"] = replicas
