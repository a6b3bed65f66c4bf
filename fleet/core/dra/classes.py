"""Devices of dynamic resource allocation as amounts of a resource: one resource for each DeviceClass. Pure.

The name is Kubernetes' own for a pod that asks for devices of a class as a resource, so that totals, quotas and nodes know it
as they know every other.
"""

PREFIX = "deviceclass.resource.kubernetes.io/"


def resource_of(device_class: str) -> str:
    return f"{PREFIX}{device_class}"


def is_of_class(resource: str) -> bool:
    """Whether an amount of the resource is devices that claims ask for, and containers do not."""
    return resource.startswith(PREFIX)
