"""Simulated dcgm-exporters, behind the proxy of the API server: what the GPUs of a node would do for the pods on it.

Nothing is measured. A pod that sleeps, or whose annotation ``convoy.dev/gpu-utilization`` says so ("0", "40"), uses its GPUs as
little; every other one as a training does, with small changes from minute to minute. A pod keeps its GPUs while it runs.
"""

import re
import zlib
from collections.abc import Iterable, Iterator

from fleet.kube import quantities
from fleet.kube.requests.status import KubeError
from fleet.kube.resources import NODES, PODS
from fleet.kube.server.kinds import Object
from simulator.apiserver.objects.rules import now
from simulator.apiserver.objects.store import Store

UTILIZATION = "convoy.dev/gpu-utilization"
_LABEL = "nvidia-dcgm-exporter"
_PATH = re.compile(r"(/api/v1/namespaces/[^/]+/pods/[^/:]+):9400/proxy/metrics")
_RESOURCE, _MODEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
_MEMORY = re.compile(r"(\d+)GB")
_FINISHED = ("Succeeded", "Failed")
_FIELDS = {
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_FB_FREE": "Framebuffer memory free (in MiB).",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
}


def exporter_of(path: str) -> str:
    """The path of the pod whose metrics are asked for; empty for any other path."""
    match = _PATH.fullmatch(path)
    return match[1] if match else ""


class Exporters:
    """All exporters of one member, and which GPUs its pods have."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owners: dict[str, dict[int, str]] = {}
        """Node -> index of a GPU -> uid of the pod that has it."""

    def text(self, exporter: Object) -> str:
        labels, node = exporter["metadata"].get("labels") or {}, (exporter.get("spec") or {}).get("nodeName")
        row = self._store.get((NODES.group, NODES.plural), "", str(node))
        if labels.get("app") != _LABEL or row is None or (exporter.get("status") or {}).get("phase") != "Running":
            raise KubeError(503, "no endpoints available: connection refused", reason="ServiceUnavailable")
        pods = {pod["metadata"]["uid"]: pod for pod in self._pods_on(str(node))}
        owners = self._assign(str(node), _gpus_of(row), pods.values())
        return _printed(row, owners, pods)

    def _pods_on(self, node: str) -> Iterator[Object]:
        for pod in self._store.of_kind((PODS.group, PODS.plural)):
            on_node = (pod.get("spec") or {}).get("nodeName") == node
            if on_node and (pod.get("status") or {}).get("phase") not in _FINISHED and _wanted(pod):
                yield pod

    def _assign(self, node: str, gpus: int, pods: Iterable[Object]) -> dict[int, str]:
        """Each pod keeps what it had; a new one gets the first that are free."""
        wanted = {pod["metadata"]["uid"]: _wanted(pod) for pod in pods}
        owners = {gpu: uid for gpu, uid in self._owners.get(node, {}).items() if uid in wanted and gpu < gpus}
        for uid, count in wanted.items():
            missing = count - sum(owner == uid for owner in owners.values())
            free = [gpu for gpu in range(gpus) if gpu not in owners]
            owners |= dict.fromkeys(free[: max(0, missing)], uid)
        self._owners[node] = owners
        return owners


def _gpus_of(node: Object) -> int:
    return int(((node.get("status") or {}).get("allocatable") or {}).get(_RESOURCE, 0))


def _wanted(pod: Object) -> int:
    total = 0
    for container in (pod.get("spec") or {}).get("containers") or []:
        resources = container.get("resources") or {}
        amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        total += quantities.units(amounts.get(_RESOURCE, 0))
    return total


def _printed(node: Object, owners: dict[int, str], pods: dict[str, Object]) -> str:
    model = (node["metadata"].get("labels") or {}).get(_MODEL, "NVIDIA-Simulated")
    found = _MEMORY.search(model)
    memory = int(found[1]) * 1024 if found else 16384
    name = node["metadata"]["name"]
    lines: dict[str, list[str]] = {metric: [] for metric in _FIELDS}
    for gpu in range(_gpus_of(node)):
        pod = pods.get(owners.get(gpu, ""))
        labels = _labels(name, model, gpu, pod)
        use = _utilization(pod, gpu) if pod else 0
        used = memory * (12 + use * 7 // 10) // 100 if pod else 0
        values = (30 + use * 2 // 5, f"{55 + use * 2.9:.3f}", use, memory - used, used)
        for metric, value in zip(_FIELDS, values, strict=True):
            lines[metric].append(f"{metric}{{{labels}}} {value}")
    return "".join(
        f"# HELP {metric} {_FIELDS[metric]}\n# TYPE {metric} gauge\n" + "".join(f"{line}\n" for line in printed)
        for metric, printed in lines.items()
    )


def _labels(node: str, model: str, gpu: int, pod: Object | None) -> str:
    number = zlib.crc32(f"{node}/{gpu}".encode())
    labels = {
        "gpu": str(gpu),
        "UUID": f"GPU-{number:08x}-0000-0000-0000-{number:012x}",
        "device": f"nvidia{gpu}",
        "modelName": model,
        "Hostname": node,
    }
    if pod is not None:
        labels["container"] = str(pod["spec"]["containers"][0]["name"])
        labels["namespace"], labels["pod"] = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def _utilization(pod: Object, gpu: int) -> int:
    """Percent."""
    asked_for = (pod["metadata"].get("annotations") or {}).get(UTILIZATION, "")
    if asked_for.isascii() and asked_for.isdigit():
        return min(100, int(asked_for[:4]))
    if (pod.get("status") or {}).get("phase") != "Running" or _sleeps(pod):
        return 0
    minute = int(now().timestamp()) // 60
    return 84 + zlib.crc32(f"{pod['metadata']['uid']}/{gpu}/{minute}".encode()) % 15


def _sleeps(pod: Object) -> bool:
    container = pod["spec"]["containers"][0]
    words = " ".join(map(str, [*(container.get("command") or []), *(container.get("args") or [])]))
    return bool(re.match(r"(\S*sh -\w*c )?\s*(exec )?sleep\b", words))
