"""All controllers of one cluster, run against one API server, real or simulated, which they reach by a client."""

import zlib
from dataclasses import dataclass, field
from pathlib import Path

from fleet.kube.resources import NODES
from fleet.member import discovery
from fleet.member.client import MemberClient
from simulator.machinery.clock import Clock
from simulator.machinery.controller import Cluster, Controller
from simulator.node.devices import Devices
from simulator.node.kubelet import Kubelet
from simulator.node.logs import Logs
from simulator.node.nodes import POWER, NodeLifecycle, Pool, make_nodes
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
    """What a cluster is made of."""

    pools: tuple[Pool, ...]
    labels: dict[str, str] = field(default_factory=dict)
    """On every node: region, zone ..."""
    scheduler: str = ""
    """The image that its scheduler is seen to run, ``koord-scheduler:v1.6.0``; empty: it is not seen."""
    api_host: str = ""
    """A name on its API server's certificate, by which pods reach it; empty: the cluster's name."""


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
        """``collect``: also remove what deleted jobs leave behind, for servers that do not."""
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
        """Makes the nodes and returns when every controller works."""
        make_nodes(
            self._client,
            self._name,
            list(self._shape.pools),
            labels=self._shape.labels,
            version=self._version,
            now=self._cluster.clock.now(),
        )
        self._cluster.start()
        for controller in self._controllers:
            controller.start()
        if self._shape.scheduler:
            show_scheduler(self._client, self._shape.scheduler, self._cluster.clock.now())

    def leave(self) -> None:
        """Asks the caches to end with their next word from the server: call before the server stops."""
        self._cluster.stop.set()

    def stop(self) -> None:
        self.leave()
        for controller in self._controllers:
            controller.stop()

    def switch_node(self, node: str, *, on: bool) -> None:
        """Powers a node off or on. MemberMissing: there is no such node."""
        note = None if on else "off"
        self._client.merge_patch(NODES.path(name=node), {"metadata": {"annotations": {POWER: note}}})

    def crash_pod(self, key: str, code: int = 1) -> bool:
        return self.kubelet.crash(key, code)
