"""The link matrix of a simulated node's GPUs, by their model, in the notation of ``nvidia-smi topo``. No I/O."""

import json

from simulator.machinery.objects import Object, labels_of, name_of

MODEL = "nvidia.com/gpu.product"
SWITCH = "ack.node.gpu.schedule"
"""Label of a node. ``topology``: its device plugin allocates GPUs by their links."""
LINK_GBS = 48.2
"""The measured bandwidth of one NVLink in both directions."""
SELF_GBS = 740.0
_DGX1 = ("-1122...", "1-21.2..", "12-2..1.", "212-...1", "2...-112", ".2..1-21", "..1.12-2", "...1212-")
_SWITCHED = {"A100": 12, "A800": 8, "H100": 18, "H800": 8, "H200": 18, "H20": 18, "B200": 18}


def is_switched_on(node: Object) -> bool:
    return labels_of(node).get(SWITCH) == "topology"


def links(model: str, gpus: int) -> list[list[str]]:
    """DGX-1 for V100, an NVSwitch for models that have one, and PCIe with two sockets for all others."""
    return [[_link(model, a, b, gpus) for b in range(gpus)] for a in range(gpus)]


def _link(model: str, a: int, b: int, gpus: int) -> str:
    if a == b:
        return "N-A"
    if "V100" in model and max(a, b) < len(_DGX1) and _DGX1[a][b].isdigit():
        return f"NV{_DGX1[a][b]}"
    through = next((n for name, n in _SWITCHED.items() if name in model), 0)
    if through:
        return f"NV{through}"
    half = max(gpus // 2, 1) if "V100" not in model else 4
    return "PHB" if a // half == b // half else "SYS"


def bandwidths(matrix: list[list[str]]) -> list[list[float]]:
    each = {"N-A": SELF_GBS, "PHB": 20.0, "SYS": 12.0}
    return [[each[link] if link in each else round(int(link[2:]) * LINK_GBS, 2) for link in row] for row in matrix]


def config_map(node: Object, gpus: int) -> Object:
    """The ConfigMap that the device plugin of such nodes writes. The spelling of ``bandwith`` is the plugin's."""
    matrix = links(labels_of(node).get(MODEL, ""), gpus)
    data = {
        "devices": {str(i): "Healthy" for i in range(gpus)},
        "linkType": matrix,
        "bandwith": bandwidths(matrix),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{name_of(node)}-gpu-topology",
            "namespace": "kube-system",
            "labels": {SWITCH: "topology", "nodename": name_of(node)},
        },
        "data": {key: json.dumps(value) for key, value in data.items()},
    }
