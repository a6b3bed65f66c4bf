"""Removes the dependents of deleted jobs, for an API server without a garbage collector.

The simulated server has its own. A plain kube-apiserver depends on kube-controller-manager, which this replaces.
"""

import contextlib

from fleet.kube.resources import (
    JOBS,
    POD_GROUPS,
    PODS,
    RAY_CLUSTERS,
    SCALE_INS,
    SCALE_OUTS,
    SERVICES,
    VOLCANO_POD_GROUPS,
    Resource,
)
from fleet.member.client import Object
from fleet.member.errors import MemberMissing
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import name_of, namespace_of, uid_of
from simulator.operators.kubeflow.kinds import KUBEFLOW_KINDS
from simulator.operators.registry import OPERATORS

DEPENDENTS = (PODS, JOBS, SERVICES, POD_GROUPS, VOLCANO_POD_GROUPS, SCALE_INS, SCALE_OUTS, RAY_CLUSTERS)
OWNERS = (
    JOBS,
    *(kubeflow_kind.resource for kubeflow_kind in KUBEFLOW_KINDS),
    *(operator.resource for operator in OPERATORS),
)


class Collector(Controller):
    """Keys are the uids of deleted owners."""

    name = "collector"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._dependents = {resource: cluster.informer(resource) for resource in DEPENDENTS if cluster.serves(resource)}
        self._owners = [cluster.informer(resource) for resource in OWNERS if cluster.serves(resource)]
        for informer in self._owners:
            informer.listen(self._on_owner)
        for informer in self._dependents.values():
            informer.listen(self._on_dependent)

    def reconcile(self, key: str) -> float | None:
        if any(uid_of(owner) == key for informer in self._owners for owner in informer.all()):
            return None
        for resource, informer in self._dependents.items():
            for obj in informer.owned_by(key):
                self._remove(resource, obj)
        return None

    def _on_owner(self, kind: str, owner: Object) -> None:
        if kind == "DELETED":
            self.queue.add(uid_of(owner))

    def _on_dependent(self, kind: str, obj: Object) -> None:
        """Queues the owner, because a dependent that is created just after its owner's deletion is an orphan from the start."""
        for reference in obj["metadata"].get("ownerReferences") or []:
            if kind == "ADDED" and reference["kind"] in {resource.kind for resource in OWNERS}:
                self.queue.add_after(reference["uid"], 1.0)

    def _remove(self, resource: Resource, obj: Object) -> None:
        with contextlib.suppress(MemberMissing):
            self.client.delete(resource.path(namespace_of(obj), name_of(obj)), uid=uid_of(obj))
