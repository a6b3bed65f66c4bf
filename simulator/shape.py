"""Parses the file that describes the simulated members. No I/O.

timeScale: 1            # simulated seconds per second
startDelay: 1s          # how long a container takes to start, simulated
members:
  - name: north
    version: v1.31.0
    region: eu-north    # become the topology labels of every node
    zone: eu-north-1
    labels: {}
    serves: {mpijobs.kubeflow.org: v1, tfjobs.kubeflow.org: ""}   # another version; not at all
    scheduler: koord-scheduler:v1.6.0   # the image its scheduler is seen to run; without: it is not seen
    gpuMetrics: true    # a dcgm-exporter on each node with GPUs
    manifests: [supervisor.yaml]        # files beside this one, of what is installed there from the start
    pools:
      - {name: gpu, count: 4, cpu: "96", memory: 1Ti, gpus: 8, gpuModel: A100, labels: {}, taints: []}
      - {name: dra, count: 4, gpus: 8, gpuClass: gpu.nvidia.com}   # had by claims of this DeviceClass
"""

from dataclasses import dataclass
from typing import Any

import yaml

from fleet.kube.quantities import QuantityError, milli
from simulator.controller_manager import Shape
from simulator.node.lifecycle import seconds
from simulator.node.nodes import Pool, Spot

VERSION = "v1.31.0"
_UNITS = {"day": 1.0, "h": 24.0}
"""Of bursts: how many of them a day has."""


class BadShape(ValueError):
    """The file is invalid. The message shows where."""


@dataclass(frozen=True, slots=True)
class MemberPlan:
    name: str
    version: str
    shape: Shape
    serves: dict[str, str]
    manifests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetPlan:
    members: tuple[MemberPlan, ...]
    time_scale: float
    start_delay_s: float


def parse(text: str) -> FleetPlan:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise BadShape(f"not YAML: {e}") from e
    if not isinstance(document, dict) or not isinstance(document.get("members"), list) or not document["members"]:
        raise BadShape("members: a list of at least one member is required")
    members = tuple(_member(entry, f"members[{i}]") for i, entry in enumerate(document["members"]))
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise BadShape("members: two have the same name")
    try:
        scale, delay_s = float(document.get("timeScale", 1.0)), seconds(str(document.get("startDelay", "1s")))
    except (TypeError, ValueError) as e:
        raise BadShape(f"timeScale, startDelay: {e}") from e
    if scale <= 0:
        raise BadShape(f"timeScale: {scale} is not above 0")
    return FleetPlan(members, scale, delay_s)


def _member(entry: Any, where: str) -> MemberPlan:
    _only(
        entry,
        where,
        "name",
        "version",
        "region",
        "zone",
        "labels",
        "serves",
        "scheduler",
        "gpuMetrics",
        "manifests",
        "pools",
    )
    name = str(entry.get("name") or "")
    if not name.replace("-", "").isalnum() or name != name.lower():
        raise BadShape(f"{where}.name: {name!r} is not lower-case letters, digits and dashes")
    labels = {str(k): str(v) for k, v in (entry.get("labels") or {}).items()}
    for field in ("region", "zone"):
        if entry.get(field):
            labels[f"topology.kubernetes.io/{field}"] = str(entry[field])
    serves = {str(name): str(version or "") for name, version in (entry.get("serves") or {}).items()}
    pools = tuple(_pool(pool, f"{where}.pools[{i}]") for i, pool in enumerate(entry.get("pools") or []))
    metrics = entry.get("gpuMetrics", False)
    if not isinstance(metrics, bool):
        raise BadShape(f"{where}.gpuMetrics: {metrics!r} is not true or false")
    shape = Shape(pools, labels, str(entry.get("scheduler") or ""), gpu_metrics=metrics)
    manifests = entry.get("manifests") or []
    if not isinstance(manifests, list):
        raise BadShape(f"{where}.manifests: {manifests!r} is not a list of files")
    return MemberPlan(name, str(entry.get("version") or VERSION), shape, serves, tuple(map(str, manifests)))


def _pool(entry: Any, where: str) -> Pool:
    fields = (
        "name", "count", "cpu", "memory", "gpus", "gpuResource", "gpuModel", "gpuClass", "pods", "labels", "taints", "spot",
    )  # fmt: skip
    _only(entry, where, *fields)
    try:
        for quantity in ("cpu", "memory"):
            milli(entry.get(quantity, "1"))
        return Pool(
            name=str(entry.get("name") or "pool"),
            count=int(entry.get("count", 1)),
            cpu=str(entry.get("cpu", "64")),
            memory=str(entry.get("memory", "512Gi")),
            gpus=int(entry.get("gpus", 0)),
            gpu_resource=str(entry.get("gpuResource", "nvidia.com/gpu")),
            gpu_model=str(entry.get("gpuModel", "")),
            gpu_class=str(entry.get("gpuClass", "")),
            pods=int(entry.get("pods", 110)),
            labels={str(k): str(v) for k, v in (entry.get("labels") or {}).items()},
            taints=tuple(dict(taint) for taint in entry.get("taints") or []),
            spot=_spot(entry["spot"], f"{where}.spot") if entry.get("spot") else None,
        )
    except (QuantityError, TypeError, ValueError) as e:
        raise BadShape(f"{where}: {e}") from e


def _spot(entry: Any, where: str) -> Spot:
    _only(entry, where, "meanUp", "meanDown", "notice", "bursts", "share", "seed")
    try:
        spot = Spot(
            mean_up_s=seconds(str(entry.get("meanUp", "6h"))),
            mean_down_s=seconds(str(entry.get("meanDown", "30m"))),
            notice_s=seconds(str(entry.get("notice", "120s"))),
            bursts_per_day=_per_day(str(entry.get("bursts", "0/day"))),
            share=float(entry.get("share", 0.5)),
            seed=int(entry.get("seed", 0)),
        )
    except (TypeError, ValueError) as e:
        raise BadShape(f"{where}: {e}") from e
    if not (spot.mean_up_s > 0 and spot.mean_down_s > 0 and 0 <= spot.share <= 1):
        raise BadShape(f"{where}: meanUp and meanDown are above 0, and share is between 0 and 1")
    return spot


def _per_day(text: str) -> float:
    number, _, unit = text.partition("/")
    if unit not in _UNITS or not number.replace(".", "", 1).isdigit():
        raise ValueError(f"bursts: {text!r} is not a number a day or an hour, such as 1/day or 0.5/h")
    return float(number) * _UNITS[unit]


def _only(entry: Any, where: str, *fields: str) -> None:
    if not isinstance(entry, dict):
        raise BadShape(f"{where}: not a mapping")
    unknown = sorted(set(entry) - set(fields))
    if unknown:
        raise BadShape(f"{where}: unknown field {unknown[0]!r}; known are {', '.join(fields)}")
