"""RayJobs (KubeRay): a cluster of a head and worker groups, a Job that submits the program, and retries. No I/O.

As in KubeRay, a RayCluster is made of the job once, and its sizes are followed from then on: a changed ``rayClusterSpec``
of the job counts for the next one. Unlike there, the job itself owns the cluster's pods.
"""

import copy

from fleet.kube.resources import JOBS, PODS, RAY_CLUSTERS, RAY_JOBS
from simulator.machinery.objects import Object, is_true, labels_of, name_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult, at, random_suffix

SUBMITS = "K8sJobMode"
LONG = {"convoy.dev/duration": "8760h"}
"""A Ray node runs until its cluster is deleted."""


class Ray(Operator):
    resource = RAY_JOBS

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        status, spec = copy.deepcopy(job.get("status") or {}), job["spec"]
        deployed = status.get("jobDeploymentStatus") or ""
        cluster = [dependents.cluster] if dependents.cluster else []
        everything = [*cluster, *dependents.pods, *dependents.jobs]
        if deployed in ("Complete", "Failed"):
            ends = spec.get("shutdownAfterJobFinishes")
            return ReconcileResult(status, remove=[*cluster, *dependents.pods] if ends else [])
        if spec.get("suspend"):
            status["jobDeploymentStatus"] = "Suspending" if everything else "Suspended"
            return ReconcileResult(_without_cluster(status), remove=everything)
        if deployed == "Retrying" and everything:
            return ReconcileResult(status, remove=everything)
        if deployed in ("", "Suspending", "Suspended", "Retrying"):
            status |= {"jobDeploymentStatus": "Initializing", "jobStatus": "PENDING"}
            suffix = random_suffix(job, f"cluster-{status.get('failed')}-{job['metadata'].get('generation')}")
            status["rayClusterName"] = f"{name_of(job)}-{suffix}"
        at(status, "startTime", now)
        return self._run(job, dependents, status, now)

    def _run(self, job: Object, dependents: Dependents, status: Object, now: float) -> ReconcileResult:
        cluster = dependents.cluster or self._cluster(job, status["rayClusterName"])
        spec, nodes = job["spec"], self._nodes(job, cluster)
        step = ReconcileResult(status, make=[(RAY_CLUSTERS, cluster), *((PODS, node) for node in nodes)])
        names = {name_of(node) for node in nodes}
        step.remove = [pod for pod in dependents.pods if name_of(pod) not in names]
        phases = dependents.phases(name_of(node) for node in nodes)
        ready = all(phase == "Running" for phase in phases)
        submits = (spec.get("submissionMode") or SUBMITS) == SUBMITS
        if submits and (ready or dependents.jobs):
            step.make.append((JOBS, self._submitter(job)))
            self._follow(job, dependents, status, now)
        elif not submits:
            ends = {"Succeeded": "SUCCEEDED", "Failed": "FAILED"}
            self._enter(job, status, ends.get(phases[0], "RUNNING" if ready else "PENDING"), now)
        if status["jobDeploymentStatus"] == "Retrying":
            owned = [dependents.cluster] if dependents.cluster else []
            return ReconcileResult(status, remove=[*owned, *dependents.pods, *dependents.jobs])
        return step

    def _follow(self, job: Object, dependents: Dependents, status: Object, now: float) -> None:
        for child in dependents.jobs:
            ends = {"SUCCEEDED": is_true(child, "Complete"), "FAILED": is_true(child, "Failed")}
            running = "RUNNING" if dependents.running.get(name_of(child)) else "PENDING"
            self._enter(job, status, next((word for word, has_ended in ends.items() if has_ended), running), now)

    def _enter(self, job: Object, status: Object, word: str, now: float) -> None:
        status["jobStatus"] = word
        if word == "RUNNING":
            status["jobDeploymentStatus"] = "Running"
        if word not in ("SUCCEEDED", "FAILED"):
            return
        failed = int(status.get("failed") or 0) + (word == "FAILED")
        status |= {"failed": failed, "succeeded": int(word == "SUCCEEDED")}
        if word == "FAILED" and failed <= int(job["spec"].get("backoffLimit") or 0):
            status["jobDeploymentStatus"] = "Retrying"
            return
        status["jobDeploymentStatus"] = "Complete" if word == "SUCCEEDED" else "Failed"
        at(status, "endTime", now)

    def _cluster(self, job: Object, name: str) -> Object:
        metadata = self.owned(job, name, dict(labels_of(job)))
        head = {"apiVersion": RAY_CLUSTERS.api_version, "kind": RAY_CLUSTERS.kind}
        return {**head, "metadata": metadata, "spec": copy.deepcopy(job["spec"]["rayClusterSpec"])}

    def _nodes(self, job: Object, made: Object) -> list[Object]:
        spec, cluster = made["spec"], name_of(made)
        nodes = [self._node(job, cluster, "head", "headgroup", 0, spec["headGroupSpec"]["template"])]
        for group in spec.get("workerGroupSpecs") or []:
            replicas = 1 if group.get("replicas") is None else int(group["replicas"])
            count = replicas * int(group.get("numOfHosts") or 1)
            name = group["groupName"]
            nodes += [self._node(job, cluster, "worker", name, index, group["template"]) for index in range(count)]
        return nodes

    def _node(self, job: Object, cluster: str, role: str, group: str, index: int, template: Object) -> Object:
        stem = f"{cluster}-head" if role == "head" else f"{cluster}-{group}-worker"
        labels = {
            "ray.io/cluster": cluster,
            "ray.io/node-type": role,
            "ray.io/group": group,
            "ray.io/is-ray-node": "yes",
        }
        labels["ray.io/replica-index"] = str(index)
        pod = self.pod(job, f"{stem}-{random_suffix(job, f'{stem}-{index}')}", template, labels, "Always")
        pod["metadata"]["annotations"] = {**LONG, **pod["metadata"]["annotations"]}
        return pod

    def _submitter(self, job: Object) -> Object:
        head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
        usual: Object = {"spec": {"containers": [{"name": "ray-job-submitter", "image": head.get("image", "")}]}}
        template = copy.deepcopy(job["spec"].get("submitterPodTemplate") or usual)
        template["spec"]["restartPolicy"] = "Never"
        body: Object = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": self.owned(job, name_of(job))}
        return {**body, "spec": {"backoffLimit": 0, "template": template}}


def _without_cluster(status: Object) -> Object:
    cleared = ("rayClusterName", "startTime", "jobStatus")
    return {key: value for key, value in status.items() if key not in cleared}
