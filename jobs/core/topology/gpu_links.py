"""A node's GPUs as its device plugin reports them: the link matrix read into a board, who has which, what is free.

The words are those of the ConfigMap that ACK's device plugin writes and of the annotations it gives to pods. A member's answer
is not trusted to be sound: what cannot be read counts as absent. It must not know jobs.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from jobs.core.topology.gpu_sets import LINK, Board

SWITCH, ON = "ack.node.gpu.schedule", "topology"
"""Label of nodes that hand out GPUs by their links, and of the ConfigMaps that describe them."""
RESOURCE = "aliyun.com/gpu"
"""What such nodes offer in place of plain GPUs."""
GROUP, VISIBLE = "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible"
MOST = 64
"""GPUs of one node; a matrix of more is not believed."""
_NEAR = frozenset({"PIX", "PXB", "PHB", "NODE"})
"""Links that stay on one CPU socket."""
_LINK_GBS = {"H100": 20.6, "H800": 20.6, "H200": 20.6, "H20": 20.6, "B200": 40.1, "P100": 18.0}
"""GB/s of one NVLink one way, as NCCL assumes, by words of the model's name."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The GPUs of one node."""

    node: str
    links: tuple[tuple[str, ...], ...] = ()
    bandwidth: tuple[tuple[float, ...], ...] = ()
    healthy: frozenset[int] = frozenset()

    def board(self, model: str = "") -> Board:
        numbers = tuple(tuple(_nvlinks(link) for link in row) for row in self.links)
        each = next((gbs for name, gbs in _LINK_GBS.items() if name in model), LINK)
        return Board(numbers, sockets=_sockets(self.links), link_gbs=each)


def parse_gpu_links(config_map: Mapping[str, Any]) -> Devices | None:
    metadata, data = config_map.get("metadata") or {}, config_map.get("data") or {}
    links = _matrix(data.get("linkType"))
    node = (metadata.get("labels") or {}).get("nodename", "")
    if not node or not 0 < len(links) <= MOST or any(len(row) != len(links) for row in links):
        return None
    health = _json(data.get("devices"))
    sick = {int(gpu) for gpu, state in health.items() if gpu.isdigit() and state != "Healthy"} if health else set()
    try:
        bandwidth = tuple(tuple(map(float, row)) for row in _matrix(data.get("bandwidth") or data.get("bandwith")))
    except (TypeError, ValueError):
        bandwidth = ()
    if not all(isfinite(gbs) for row in bandwidth for gbs in row):
        bandwidth = ()
    matrix = tuple(tuple(map(str, row)) for row in links)
    return Devices(node, matrix, bandwidth, frozenset(range(len(links))) - frozenset(sick))


def given(pod: Mapping[str, Any]) -> tuple[int, ...]:
    """The GPUs a pod was given; none once it has ended."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return ()
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    return tuple(int(each) for each in str(notes.get(GROUP, "")).split(",") if each.strip().isdigit())


def _nvlinks(link: str) -> int:
    return int(link[2:]) if link.startswith("NV") and link[2:].isdigit() else 0


def _sockets(links: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    """By what is not linked over another socket; NVLinks hide it, so the halves of the board where the matrix does not say."""
    size = len(links)
    if not any(link in _NEAR for row in links for link in row):
        return tuple(int(gpu >= (size + 1) // 2) for gpu in range(size))
    sockets: list[int] = []
    for gpu in range(size):
        near = [sockets[other] for other in range(gpu) if links[gpu][other] in _NEAR]
        sockets.append(near[0] if near else max(sockets, default=-1) + 1)
    return tuple(sockets)


def _matrix(text: object) -> list[list[Any]]:
    loaded = _loaded(text)
    return loaded if isinstance(loaded, list) and all(isinstance(row, list) for row in loaded) else []


def _json(text: object) -> dict[str, Any]:
    loaded = _loaded(text)
    return loaded if isinstance(loaded, dict) else {}


def _loaded(text: object) -> object:
    try:
        return json.loads(str(text))
    except ValueError:
        return None


def wanted(nodes: Mapping[str, Iterable[tuple[str, int]]], each: Mapping[str, int]) -> dict[str, int]:
    """Per node the GPUs that all pods of a gang ask there together, given runs of nodes and what a pod of each role asks."""
    counts: dict[str, int] = {}
    for role, runs in nodes.items():
        for node, pods in runs:
            if each.get(role):
                counts[node] = counts.get(node, 0) + pods * each[role]
    return counts
