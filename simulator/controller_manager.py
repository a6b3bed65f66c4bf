"""Runs all controllers of one cluster against one API server, which may be simulated or real."""

import zlib
from dataclasses import dataclass, field
from pathlib import Path

from fleet.kube.resources import NODES
from fleet.member import discovery
from fleet.member.client import MemberClient, Object
from simulator import addons
from simulator.machinery.clock import Clock
from simulator.machinery.controller import Cluster, Controller
from simulator.node import gpu_exporters
from simulator.node.devices import Devices
from simulator.node.kubelet import Kubelet
from simulator.node.logs import Logs
from simulator.node.nodes import POWER, RECLAIM, NodeLifecycle, Pool, make_nodes
from simulator.operators.controller import Operators
from simulator.operators.gc import Collector
from simulator.operators.job.controller import JobController
from simulator.operators.kubeflow.controller import KubeflowOperator
from simulator.operators.trainer import NEEDED, TrainerController
from simulator.operators.training_runtimes import TrainingRuntimeController
from simulator.scheduler.controller import Scheduler
from simulator.scheduler.reservations import show_scheduler


@dataclass(frozen=True, slots=True)
class Shape:
    """The nodes and properties of a cluster."""

    pools: tuple[Pool, ...]
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of every node: region, zone ..."""
    scheduler: str = ""
    """The image of a scheduler pod to show, such as ``koord-scheduler:v1.6.0``. Empty: there is no such pod."""
    api_host: str = ""
    """A name in the API server's certificate that pods use for it. Empty: the cluster's name."""
    installed: tuple[Object, ...] = ()
    """What an administrator has installed there: `simulator.addons`."""
    gpu_metrics: bool = False
    """Whether a dcgm-exporter runs on each node with GPUs: `simulator.node.gpu_exporters`."""


class ControllerManager:
    def __init__(
        self,
        name: str,
        client: MemberClient,
        home: Path,
        shape: Shape,
        *,
        clock: Clock,
        start_delay_s: float,
        version: str,
        collect: bool = False,
    ) -> None:
        """``collect``: also remove dependents of deleted jobs, for servers without a garbage collector."""
        self._name, self._client, self._shape, self._version = name, client, shape, version
        self._cluster = Cluster(client, clock, apis=discovery.apis(client))
        subnet = zlib.crc32(name.encode()) % 200 + 20
        self.kubelet = Kubelet(
            self._cluster, home, start_delay_s=start_delay_s, subnet=subnet, api_host=shape.api_host or name
        )
        self.logs = Logs(self._cluster, self.kubelet, home)
        self._controllers: list[Controller] = [
            NodeLifecycle(self._cluster),
            Devices(self._cluster),
            Scheduler(self._cluster),
            self.kubelet,
            KubeflowOperator(self._cluster),
            Operators(self._cluster),
            JobController(self._cluster),
        ]
        if all(map(self._cluster.serves, NEEDED)):
            self._controllers += [TrainerController(self._cluster), TrainingRuntimeController(self._cluster)]
        if collect:
            self._controllers.append(Collector(self._cluster))

    def start(self) -> None:
        """Creates the nodes and starts the controllers. Returns when all are running."""
        self._make_nodes()
        self._cluster.start()
        for controller in self._controllers:
            controller.start()
        if self._shape.scheduler:
            show_scheduler(self._client, self._shape.scheduler, self._cluster.clock.now())
        addons.create(self._client, self._shape.installed)
        if self._shape.gpu_metrics:
            addons.create(self._client, gpu_exporters.objects(self._name, self._shape.pools))

    def leave(self) -> None:
        """Makes the informers end at their next event from the server. Call it before the server stops."""
        self._cluster.stop.set()

    def stop(self) -> None:
        self.leave()
        for controller in self._controllers:
            controller.stop()

    def switch_node(self, node: str, *, on: bool) -> None:
        """Powers a node off or on; one that was reclaimed is there again. Raises MemberMissing if there is no such node."""
        if on:
            self._make_nodes()
        power = None if on else "off"
        taints = {"spec": {"taints": self._taints_but_reclaim(node)}} if on else {}
        self._client.merge_patch(NODES.path(name=node), {"metadata": {"annotations": {POWER: power}}, **taints})

    def reclaim_node(self, node: str, notice_s: float) -> None:
        """Takes the node back after so many simulated seconds. Raises MemberMissing if there is no such node."""
        clock = self._cluster.clock
        taint = {"key": RECLAIM, "value": str(round(clock.now() + clock.real(notice_s))), "effect": "NoSchedule"}
        taints = [*self._taints_but_reclaim(node), taint]
        self._client.merge_patch(NODES.path(name=node), {"spec": {"taints": taints}})

    def _taints_but_reclaim(self, node: str) -> list[Object]:
        spec = self._client.get(NODES.path(name=node)).get("spec") or {}
        return [taint for taint in spec.get("taints") or [] if taint.get("key") != RECLAIM]

    def _make_nodes(self) -> None:
        make_nodes(
            self._client,
            self._name,
            list(self._shape.pools),
            labels=self._shape.labels,
            version=self._version,
            now=self._cluster.clock.now(),
        )

    def crash_pod(self, key: str, code: int = 1) -> bool:
        return self.kubelet.crash(key, code)
