"""What a test of the contract speaks to, and the small manifests it sends."""

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import urllib3
from kubernetes.client import ApiClient

from fleet.kube.resources import CRDS, Resource
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberMissing

T = TypeVar("T")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    member: MemberClient
    api: ApiClient
    access: Access
    compact: Callable[[], None]

    def members_only(self, why: str) -> None:
        """Ends the test where a fleet is asked for what only its members have."""
        if self.name == "hub":
            pytest.skip(f"a fleet is no member: {why}")

    def text(self, path: str, query: dict[str, str], **headers: str) -> str:
        """A whole answer as text; a watch with all its events."""
        sent = {"Authorization": f"Bearer {self.access.token}", **headers}
        with urllib3.PoolManager(ca_cert_data=self.access.ca_pem) as pool:
            answer = pool.request(
                "GET", self.access.server + path, fields=query, headers=sent, retries=False, timeout=60
            )
        return answer.data.decode()

    def raw(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, Any]]:
        """An answer as it is, with the code; for what no client would send."""
        sent = {"Authorization": f"Bearer {self.access.token}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with urllib3.PoolManager(ca_cert_data=self.access.ca_pem) as pool:
            answer = pool.request(method, self.access.server + path, body=body, headers=sent, retries=False, timeout=60)
        return answer.status, json.loads(answer.data)


def until(found: Callable[[], T], seconds: float = 60.0) -> T:
    """The first true answer; asked again and again."""
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.03)
    return answer


def served(target: Target, resource: Resource) -> bool:
    try:
        target.member.list(resource.path())
    except MemberMissing:
        return False
    return True


def gone(target: Target, path: str) -> bool:
    try:
        target.member.get(path)
    except MemberMissing:
        return True
    return False


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def job(name: str, **metadata: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {"template": template},
    }


def owner(found: dict[str, Any], *, blocks: bool = True) -> dict[str, Any]:
    kept = {key: found[key] for key in ("apiVersion", "kind")}
    metadata = {key: found["metadata"][key] for key in ("name", "uid")}
    return {**kept, **metadata, "blockOwnerDeletion": blocks, "controller": True}


def definition(kind: str = "", *, status: bool = True) -> tuple[Resource, dict[str, Any]]:
    """A custom resource that is nobody else's, and the manifest that defines it."""
    kind = kind or f"Kind{next(_numbers)}"
    resource = Resource("contract.test", "v1", f"{kind.lower()}s", kind)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    if status:
        version["subresources"] = {"status": {}}
    names = {"plural": resource.plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return resource, {
        "apiVersion": CRDS.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
