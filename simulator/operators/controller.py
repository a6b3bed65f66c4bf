"""Carries out the results of all operators through the API server: one controller for all kinds that have an operator."""

import contextlib
from functools import partial

from fleet.kube.resources import (
    JOBS,
    PODS,
    RAY_CLUSTERS,
    SCALE_INS,
    SCALE_OUTS,
    VOLCANO_COMMANDS,
    VOLCANO_POD_GROUPS,
    Resource,
)
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing
from simulator.machinery.conditions import difference
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import is_leaving, key_of, name_of, namespace_of, owner_of, phase_of, uid_of
from simulator.operators.operator import Dependents, ReconcileResult
from simulator.operators.registry import OPERATORS

GATHER_S = 0.02


class Operators(Controller):
    """Keys are ``group/Kind/namespace/name``."""

    name = "operators"
    workers = 2

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._operators = {_key(t.resource): t for t in OPERATORS if cluster.serves(t.resource)}
        self._jobs = {key: cluster.informer(operator.resource) for key, operator in self._operators.items()}
        self._children = {PODS: cluster.informer(PODS), JOBS: cluster.informer(JOBS)}
        for resource in (VOLCANO_POD_GROUPS, VOLCANO_COMMANDS, SCALE_INS, SCALE_OUTS, RAY_CLUSTERS):
            if cluster.serves(resource):
                self._children[resource] = cluster.informer(resource)
        for key, informer in self._jobs.items():
            informer.listen(partial(self._on_job, key))
        for informer in self._children.values():
            informer.listen(self._on_child)

    def reconcile(self, key: str) -> float | None:
        group, kind, where = key.split("/", 2)
        operator, informer = self._operators[f"{group}/{kind}"], self._jobs[f"{group}/{kind}"]
        job = informer.get(where)
        if job is None or is_leaving(job):
            return None
        result = operator.step(job, self._dependents(job), self.clock.now())
        self._carry_out(job, result)
        patch = difference(job.get("status") or {}, result.status)
        if patch:
            path = operator.resource.path(namespace_of(job), name_of(job), "status")
            informer.learn(self.client.merge_patch(path, {"metadata": {"uid": uid_of(job)}, "status": patch}))
            self.queue.add_after(key, GATHER_S)
        return result.again_s

    def _dependents(self, job: Object) -> Dependents:
        def owned(resource: Resource) -> list[Object]:
            informer = self._children.get(resource)
            return informer.owned_by(uid_of(job)) if informer else []

        jobs = owned(JOBS)
        pods = {name_of(child): self._children[PODS].owned_by(uid_of(child)) for child in jobs}
        running = {name: sum(phase_of(pod) == "Running" for pod in owned_pods) for name, owned_pods in pods.items()}
        groups = owned(VOLCANO_POD_GROUPS)
        commands = owned(VOLCANO_COMMANDS)
        aborted = any(command.get("action") == "AbortJob" for command in commands)
        scalers, clusters = owned(SCALE_INS) + owned(SCALE_OUTS), owned(RAY_CLUSTERS)
        group, cluster = (owned_ones[0] if owned_ones else None for owned_ones in (groups, clusters))
        return Dependents(owned(PODS), jobs, group, aborted, scalers, cluster, running)

    def _carry_out(self, job: Object, result: ReconcileResult) -> None:
        namespace, uid = namespace_of(job), uid_of(job)
        for obj in result.remove:
            kept = (each for each in (JOBS, RAY_CLUSTERS) if each in self._children)
            resource = next((each for each in kept if obj in self._children[each].owned_by(uid)), PODS)
            if not is_leaving(obj):
                with contextlib.suppress(MemberMissing):
                    answer = self.client.delete(resource.path(namespace, name_of(obj)), propagation="Background")
                    self._children[resource].learn_if_object(answer)
        for pod, annotations in result.annotate:
            patch = {"metadata": {"uid": uid_of(pod), "annotations": annotations}}
            with contextlib.suppress(MemberMissing):
                self._children[PODS].learn(self.client.merge_patch(PODS.path(namespace, name_of(pod)), patch))
        for resource, body in result.make:
            informer = self._children.get(resource)
            if informer is not None and informer.get(key_of(body)) is not None:
                continue
            with contextlib.suppress(MemberExists):
                created = self.client.create(resource.path(namespace), body)
                if informer is not None:
                    informer.learn(created)
        for resource, obj, spec in result.resize:
            with contextlib.suppress(MemberMissing):
                path = resource.path(namespace, name_of(obj))
                self._children[resource].learn(
                    self.client.merge_patch(path, {"metadata": {"uid": uid_of(obj)}, "spec": spec})
                )
        for resource, obj, status in result.statuses:
            if change := difference(obj.get("status") or {}, status):
                path = resource.path(namespace, name_of(obj), "status")
                with contextlib.suppress(MemberMissing):
                    patched = self.client.merge_patch(path, {"metadata": {"uid": uid_of(obj)}, "status": change})
                    self._children[resource].learn(patched)

    def _on_job(self, key: str, change: str, job: Object) -> None:
        if change != "DELETED":
            self.queue.add(f"{key}/{key_of(job)}")

    def _on_child(self, _change: str, child: Object) -> None:
        owner = owner_of(child)
        if owner and owner["kind"] == JOBS.kind and owner["apiVersion"] == JOBS.api_version:
            parent = self._children[JOBS].get(f"{namespace_of(child)}/{owner['name']}")
            owner = owner_of(parent) if parent else None
        if owner and (key := _key_of(owner)) in self._operators:
            self.queue.add_after(f"{key}/{namespace_of(child)}/{owner['name']}", GATHER_S)


def _key(resource: Resource) -> str:
    return f"{resource.group}/{resource.kind}"


def _key_of(owner: Object) -> str:
    return f"{owner['apiVersion'].partition('/')[0]}/{owner['kind']}"
