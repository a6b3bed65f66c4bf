"""Which resources are GPUs and other accelerators, and how many devices an amount of them is. Pure.

One table for totals, bars, sizes of jobs, values over time and metrics. A slice of a device (MIG) counts as a device. An amount
of a device's memory is a share of devices: a pod that asks for some has a part of one, and a node says beside its memory of how
many devices it is. Operators add resources by `CONVOY_DEVICE_RESOURCES`; `add` is called once, when a process starts.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache

WHOLE = (
    *("*/gpu", "*/npu", "*/dcu", "*/xpu", "*/mlu", "google.com/tpu", "habana.ai/gaudi", "aws.amazon.com/neuron"),
    *("deviceclass.resource.kubernetes.io/*gpu*", "deviceclass.resource.kubernetes.io/mig.*"),
    *("deviceclass.resource.kubernetes.io/*tpu*", "deviceclass.resource.kubernetes.io/*npu*"),
    *("huawei.com/Ascend*", "nvidia.com/mig-*", "nvidia.com/gpu.shared", "gpu.intel.com/i915", "gpu.intel.com/xe"),
)
"""Resources of which one is one device, or one slice of a device; of classes of devices those that are named after such."""
MEMORY, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
"""Memory of GPUs in GiB that pods share, and of how many GPUs of a node it is."""

_added: tuple[str, ...] = ()


def add(patterns: Iterable[str]) -> None:
    """Counts resources of these names, or patterns such as ``example.com/chip-*``, as devices."""
    global _added
    _added = tuple(patterns)
    is_device.cache_clear()


@cache
def is_device(resource: str) -> bool:
    """Whether one of the resource is one device."""
    return any(fnmatchcase(resource, pattern) for pattern in (*WHOLE, *_added))


def count(amounts: Mapping[str, int], offered: Mapping[str, int] | None = None) -> int:
    """How many devices of any vendor the amounts are.

    ``offered``: what the node or cluster offers whose use the amounts are; without it, memory is part of one device.
    """
    whole = sum(amount for resource, amount in amounts.items() if is_device(resource))
    memory, stated = amounts.get(MEMORY, 0), amounts.get(COUNT, 0)
    if stated or memory <= 0:
        return whole + stated
    each = offered.get(MEMORY, 0) // offered[COUNT] if offered and offered.get(COUNT) else 0
    return whole + (-(-memory // each) if each else 1)
