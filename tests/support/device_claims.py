"""Devices that pods have by claims: what a driver and a person write of them."""

import json
from typing import Any

import yaml

from fleet.core.dra import classes
from fleet.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES
from fleet.member.client import Object
from tests.support.world import pytorch_job

CLASS = "gpu.nvidia.com"
GPUS = classes.resource_of(CLASS)


def device_class(name: str = CLASS, *expressions: str) -> Object:
    selectors = expressions or (f"device.driver == '{CLASS}' && device.attributes['{CLASS}'].type == 'gpu'",)
    spec = {"selectors": [{"cel": {"expression": each}} for each in selectors]}
    return {
        "apiVersion": DEVICE_CLASSES.api_version,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def resource_slice(node: str, devices: int = 8, generation: int = 1, **more: Any) -> Object:
    listed = [
        {"name": f"gpu-{i}", "attributes": {"type": {"string": "gpu"}, "index": {"int": i}}, **more}
        for i in range(devices)
    ]
    spec = {
        "driver": CLASS,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
        "devices": listed,
    }
    head = {"apiVersion": RESOURCE_SLICES.api_version, "kind": "ResourceSlice"}
    return {**head, "metadata": {"name": f"{node}-gpus-{generation}"}, "spec": spec}


def allocated(*devices: tuple[str, str]) -> Object:
    """The status of a claim that has these devices, ``(pool, device)``."""
    results = [{"request": "gpu", "driver": CLASS, "pool": pool, "device": name} for pool, name in devices]
    return {"allocation": {"devices": {"results": results}}}


def template(name: str = "two-gpus", count: int = 2, kind: str = "ResourceClaimTemplate", **exactly: Any) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": CLASS, "count": count, **exactly}}
    spec: Object = {"devices": {"requests": [request]}}
    head = {"apiVersion": RESOURCE_CLAIM_TEMPLATES.api_version, "kind": kind}
    return {**head, "metadata": {"name": name}, "spec": {"spec": spec} if kind.endswith("Template") else spec}


def job(name: str, claim: str = "two-gpus", *, workers: int = 2, field: str = "resourceClaimTemplateName") -> Object:
    """A job whose pods ask for their devices by a claim."""
    body: Object = json.loads(json.dumps(yaml.safe_load(pytorch_job(name, workers=workers))))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["resourceClaims"] = [{"name": "gpus", field: claim}]
        spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}], "requests": {"cpu": "1"}}
    return body
