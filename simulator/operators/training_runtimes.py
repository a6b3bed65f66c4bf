"""Protects training runtimes from deletion with a finalizer as long as a TrainJob names them, as Kubeflow Trainer 2 does."""

from functools import partial

from fleet.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from fleet.member.client import Object
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import is_leaving, key_of, name_of, namespace_of

FINALIZER = "trainer.kubeflow.org/resource-in-use"


class TrainingRuntimeController(Controller):
    """Keys are ``kind/namespace/name`` of runtimes; a ClusterTrainingRuntime has no namespace."""

    name = "training-runtimes"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._jobs = cluster.informer(TRAIN_JOBS)
        self._jobs.listen(lambda _change, job: self.queue.add(runtime_key(job)))
        self._runtimes = {
            resource.kind: (resource, cluster.informer(resource))
            for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
        }
        for resource, informer in self._runtimes.values():
            informer.listen(partial(self._on_runtime, resource.kind))

    def reconcile(self, key: str) -> None:
        kind, _, of_kind = key.partition("/")
        resource, informer = self._runtimes[kind]
        if (runtime := informer.get(of_kind)) is None:
            return
        used = any(runtime_key(job) == key for job in self._jobs.all())
        finalizers = [str(each) for each in runtime["metadata"].get("finalizers") or []]
        if used and FINALIZER not in finalizers and not is_leaving(runtime):
            self._write(resource, runtime, [*finalizers, FINALIZER])
        elif is_leaving(runtime) and not used and FINALIZER in finalizers:
            self._write(resource, runtime, [each for each in finalizers if each != FINALIZER])

    def _on_runtime(self, kind: str, _change: str, runtime: Object) -> None:
        self.queue.add(f"{kind}/{key_of(runtime)}")

    def _write(self, resource: Resource, runtime: Object, finalizers: list[str]) -> None:
        metadata = runtime["metadata"]
        body = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "finalizers": finalizers}
        path = resource.path(namespace_of(runtime), name_of(runtime))
        self.client.merge_patch(path, {"metadata": body})


def runtime_key(job: Object) -> str:
    """The key of the runtime that a TrainJob names."""
    reference = job["spec"]["runtimeRef"]
    kind = reference.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    namespace = namespace_of(job) if kind == TRAINING_RUNTIMES.kind else ""
    return f"{kind}/{namespace}/{reference['name']}"
