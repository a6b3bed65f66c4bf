"""Devices that pods have by claims (resource.k8s.io/v1): what nodes have, what pods ask for, and the allocation to claims.

It also does the work of the controller of claims: that of a template is created when its pod gets a node, and removed when the
pod has ended. In a simulated member the devices of a driver are those of the class with the driver's name.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from fleet.core.dra import classes
from fleet.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RESOURCE_SLICES
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing
from simulator.machinery.controller import Cluster
from simulator.machinery.objects import name_of, namespace_of, owner_reference, uid_of
from simulator.scheduler.fit import Amounts

_DeviceId = tuple[str, str, str]


class DeviceClaims:
    def __init__(self, cluster: Cluster, wake: Callable[[], None]) -> None:
        """``wake`` is called when pods that wait may fit, or their claims are known now."""
        self._client = cluster.client
        self._slices = cluster.informer(RESOURCE_SLICES)
        self._templates = cluster.informer(RESOURCE_CLAIM_TEMPLATES)
        self._claims = cluster.informer(RESOURCE_CLAIMS)
        self._lock = threading.Lock()
        for informer in (self._slices, self._templates, self._claims):
            informer.listen(lambda _kind, _obj: wake())

    def offers(self, node: str) -> Amounts:
        """What the node has, in thousandths as all amounts here."""
        offered: Amounts = {}
        for driver, _, _ in self._devices(node):
            resource = classes.resource_of(driver)
            offered[resource] = offered.get(resource, 0) + 1000
        return offered

    def asked(self, pod: Object) -> Amounts:
        """What the claims of a pod ask for; of one that is not there what no node has."""
        asked: Amounts = {}
        for entry in pod["spec"].get("resourceClaims") or []:
            spec = self._spec(pod, entry)
            if spec is None:
                asked[f"resource claim {entry['name']}"] = 1000
                continue
            for name, count in _counts(spec):
                resource = classes.resource_of(name)
                asked[resource] = asked.get(resource, 0) + 1000 * count
        return asked

    def allocate(self, pod: Object, node: str) -> None:
        """Gives each claim of the pod devices of the node, before the pod is bound to it."""
        statuses = []
        for entry in pod["spec"].get("resourceClaims") or []:
            spec = self._spec(pod, entry)
            if spec is None:
                raise MemberMissing(f"the claim of {entry['name']} is gone")
            with self._lock:
                claim = self._claim_of(pod, entry, spec)
                self._allocate(claim, spec, node)
            statuses.append({"name": entry["name"], "resourceClaimName": name_of(claim)})
        if statuses:
            path = PODS.path(namespace_of(pod), name_of(pod), "status")
            body = {"metadata": {"uid": uid_of(pod)}, "status": {"resourceClaimStatuses": statuses}}
            self._client.merge_patch(path, body)

    def release(self, pod: Object) -> None:
        """The claims that were created for a pod go with it."""
        for claim in self._claims.owned_by(uid_of(pod)):
            with contextlib.suppress(MemberMissing):
                self._client.delete(RESOURCE_CLAIMS.path(namespace_of(claim), name_of(claim)), uid=uid_of(claim))

    def _spec(self, pod: Object, entry: Object) -> Object | None:
        namespace = namespace_of(pod)
        if name := entry.get("resourceClaimName"):
            claim = self._claims.get(f"{namespace}/{name}")
            return claim["spec"] if claim else None
        template = self._templates.get(f"{namespace}/{entry.get('resourceClaimTemplateName')}")
        return template["spec"]["spec"] if template else None

    def _claim_of(self, pod: Object, entry: Object, spec: Object) -> Object:
        namespace = namespace_of(pod)
        name = entry.get("resourceClaimName") or f"{name_of(pod)}-{entry['name']}-{uid_of(pod)[:5]}"
        if claim := self._claims.get(f"{namespace}/{name}"):
            return claim
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner_reference(pod, "v1", "Pod")]}
        head = {"apiVersion": RESOURCE_CLAIMS.api_version, "kind": RESOURCE_CLAIMS.kind}
        try:
            claim = self._client.create(RESOURCE_CLAIMS.path(namespace), {**head, "metadata": metadata, "spec": spec})
        except MemberExists:
            claim = self._client.get(RESOURCE_CLAIMS.path(namespace, name))
        self._claims.learn(claim)
        return claim

    def _allocate(self, claim: Object, spec: Object, node: str) -> None:
        if (claim.get("status") or {}).get("allocation"):
            return
        taken = {device for each in self._claims.all() for device in _allocated(each)}
        free = [device for device in self._devices(node) if device not in taken]
        results = []
        for request, (driver, count) in zip(spec["devices"]["requests"], _counts(spec), strict=True):
            chosen = [device for device in free if device[0] == driver][:count]
            if len(chosen) < count:
                raise MemberMissing(f"{node} has no {count} free devices of {driver}")
            free = [device for device in free if device not in chosen]
            for _, pool, device in chosen:
                results.append({"request": request["name"], "driver": driver, "pool": pool, "device": device})
        path = RESOURCE_CLAIMS.path(namespace_of(claim), name_of(claim), "status")
        status = {"allocation": {"devices": {"results": results}}}
        self._claims.learn(self._client.merge_patch(path, {"metadata": {"uid": uid_of(claim)}, "status": status}))

    def _devices(self, node: str) -> Iterator[_DeviceId]:
        for each in self._slices.all():
            spec = each["spec"]
            if spec.get("nodeName") == node:
                for device in spec.get("devices") or []:
                    yield spec["driver"], spec["pool"]["name"], device["name"]


def _counts(spec: Object) -> list[tuple[str, int]]:
    """Class and number of each request."""
    requests = (request.get("exactly") or {} for request in spec["devices"]["requests"])
    return [(str(exactly.get("deviceClassName")), int(exactly.get("count") or 1)) for exactly in requests]


def _allocated(claim: Object) -> list[_DeviceId]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    return [(each["driver"], each["pool"], each["device"]) for each in results]
