"""What a GPU-hour costs on a cluster, as its labels say: one price for all GPUs, or one per GPU model. Pure.

``convoy.dev/gpu-hour-cost: "2.5"`` prices every GPU of the cluster; ``gpu-hour-cost.convoy.dev/NVIDIA-H100-80GB-HBM3: "4.1"``
prices one model, named as in the node label `MODEL_LABELS`. The currency is the operator's own, the same on all clusters.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

GPU_HOUR_COST = "convoy.dev/gpu-hour-cost"
BY_MODEL = "gpu-hour-cost.convoy.dev/"
MODEL_LABELS = ("nvidia.com/gpu.product", "aliyun.accelerator/nvidia_name", "amd.com/gpu.product-name")
"""Node labels that name the GPU model."""
_MOST = 1e6


@dataclass(frozen=True, slots=True)
class Prices:
    """Costs of one GPU-hour; 0 where it is not known."""

    plain: float = 0.0
    by_model: Mapping[str, float] = field(default_factory=dict)

    def price_of(self, model: str) -> float:
        """The price of a model; of no model in particular (``""``), the plain price, else that of the dearest model."""
        return self.by_model.get(model) or self.plain or (0.0 if model else max(self.by_model.values(), default=0.0))


def parse_prices(labels: Mapping[str, str]) -> Prices:
    """The prices in a cluster's labels; labels that are no price (see `faults`) count as not known."""
    by_model = {key.removeprefix(BY_MODEL): _price(value) for key, value in labels.items() if key.startswith(BY_MODEL)}
    return Prices(_price(labels.get(GPU_HOUR_COST, "")), {model: price for model, price in by_model.items() if price})


def faults(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong with the price labels: (field, detail)."""
    priced = {key: value for key, value in labels.items() if key == GPU_HOUR_COST or key.startswith(BY_MODEL)}
    detail = f"must be a number above 0 and at most {_MOST:.0f}, such as 2.5"
    return [(f"labels.{key}", f"{detail}, not {value!r}") for key, value in priced.items() if not _price(value)]


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        return 0.0
    return price if math.isfinite(price) and 0 < price <= _MOST else 0.0
