"""One simulated member cluster: an API server in Python, its controllers, and its faults.

The controllers use the server's port like all clients, but faults do not affect them: pods keep running and finishing while the
API is unreachable or unreliable for clients outside.
"""

import contextlib
import os
import random
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from fleet.kube import crds
from fleet.kube.resources import CRDS
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberError, MemberExists
from simulator import images
from simulator.apiserver import metrics
from simulator.apiserver.faults import Faults
from simulator.apiserver.objects.catalog import DEVICE_CLAIMS, Catalog
from simulator.apiserver.server import ApiServer
from simulator.controller_manager import ControllerManager, Shape
from simulator.fault_parser import BadFault, Fault
from simulator.machinery.clock import WallClock
from simulator.node.logs import Logs
from simulator.node.runtime import entering
from simulator.node.runtime.processes import Process
from simulator.streaming.source import Entered, NotEntered

VERSIONS = {
    "mpijobs.kubeflow.org": "v2beta1",
    "reservations.scheduling.koordinator.sh": "",
    "queues.scheduling.volcano.sh": "",
}
"""The default version of kinds that have two. Empty: the kind is an add-on that is not served by default."""
CONNECTIONS = 48
"""Connections between the controllers and the server: one for each watch and each worker."""


class SimulatedMember:
    def __init__(
        self,
        name: str,
        home: Path,
        shape: Shape,
        *,
        time_scale: float = 1.0,
        start_delay_s: float = 1.0,
        version: str = "v1.31.0",
        seed: int = 0,
        serves: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.home = home
        self.faults = Faults(rng=random.Random(seed))  # noqa: S311 - faults are no secret
        self._shape, self._start_delay_s, self._version = shape, start_delay_s, version
        self._serves = serves or {}
        self._clock = WallClock(time_scale)
        measured = self._serves.get(metrics.GROUP) != ""
        self._server = ApiServer(name, home, version=version, faults=self.faults, log_source=self, measured=measured)
        self._server.catalog.process_images = images.parse(os.environ)
        self._client: MemberClient | None = None
        self._manager: ControllerManager | None = None

    def start(self) -> None:
        """Starts everything. Returns when the API answers and all controllers are running."""
        self._serve()
        (self.home / "kubeconfig.yaml").touch(mode=0o600)
        (self.home / "kubeconfig.yaml").write_text(yaml.safe_dump(self.kubeconfig(), sort_keys=False))
        self._client = MemberClient(self._server.inner_access(), pool=CONNECTIONS)
        self._manager = ControllerManager(
            self.name,
            self._client,
            self.home,
            self._shape,
            clock=self._clock,
            start_delay_s=self._start_delay_s,
            version=self._version,
        )
        self._manager.start()

    def _serve(self) -> None:
        claims = {DEVICE_CLAIMS: "v1"} if any(pool.gpu_class for pool in self._shape.pools) else {}
        define_in(self._server.catalog, {**claims, **self._serves})
        self._server.start()

    def rotate(self, token: str) -> None:
        """Replaces the token, so that the former credentials are refused."""
        self._server.rotate(token)

    def stop(self) -> None:
        """Stops the server and all processes of its pods. The stored state is available again after a start."""
        if self._manager:
            self._manager.leave()
            self._manager.stop()
        if self._client:
            self._client.close()
        self._server.stop()

    def access(self) -> Access:
        return self._server.access()

    def kubeconfig(self) -> dict[str, object]:
        return self._server.kubeconfig()

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """The output of a pod, for the API server (`LogSource`)."""
        logs: Logs | None = self._manager.logs if self._manager else None
        return logs.read(namespace, name, offset) if logs else None

    def former(self, namespace: str, name: str) -> bytes | None:
        """The output of a pod before its last restart, for the API server (`FormerSource`)."""
        logs: Logs | None = self._manager.logs if self._manager else None
        return logs.former(namespace, name) if logs else None

    def of_init(
        self, namespace: str, name: str, container: str, offset: int, *, former: bool
    ) -> tuple[bytes, bool] | None:
        """The output of an init container, for the API server (`InitSource`)."""
        logs: Logs | None = self._manager.logs if self._manager else None
        return logs.of_init(namespace, name, container, offset, former=former) if logs else None

    def enter(self, namespace: str, name: str, command: list[str], *, stdin: bool, tty: bool) -> Entered:
        """A command in a pod, for the API server (`PodSource`)."""
        return entering.enter(self._process(namespace, name), command, stdin=stdin, tty=tty)

    def connect(self, namespace: str, name: str, port: int) -> socket.socket:
        """A connection to a port of a pod, for the API server (`PodSource`)."""
        return entering.connect(self._process(namespace, name), port)

    def _process(self, namespace: str, name: str) -> Process:
        process = self._manager.kubelet.process(f"{namespace}/{name}") if self._manager else None
        if process is None:
            # Without a colon: kubectl would read the text as YAML, and show nothing of it.
            raise NotEntered(f"pod {namespace}/{name} is pretended by a simulated node and has no process to enter")
        return process

    def disturb(self, fault: Fault) -> str:
        """Injects the fault and returns a description. Raises BadFault if there is no such node or running pod."""
        match fault.kind:
            case "away":
                self.faults.away = True
            case "back":
                self._clear_faults()
            case "slow":
                self.faults.slow_s = fault.amount
            case "flaky":
                self.faults.error_rate = fault.amount
            case "reset":
                self.faults.reset_rate = fault.amount
            case "stale":
                self.faults.stale_watch = bool(fault.amount)
            case "node-down" | "node-up":
                self._switch_node(fault.target, on=fault.kind == "node-up")
            case "reclaim":
                self._reclaim_node(fault.target, fault.amount)
            case "deny":
                self.faults.denied.add(fault.target)
            case "crash-pod":
                if not self._manager or not self._manager.crash_pod(fault.target, int(fault.amount)):
                    raise BadFault(f"no pod {fault.target} runs on {self.name}")
        return f"{self.name}: {fault.kind} {fault.target or (f'{fault.amount:g}' if fault.amount else '')}".rstrip()

    def _reclaim_node(self, node: str, notice_s: float) -> None:
        if self._manager is None:
            raise BadFault(f"{self.name} is not started")
        try:
            self._manager.reclaim_node(node, notice_s)
        except MemberError as e:
            raise BadFault(f"{self.name}: {e.message}") from e

    def _clear_faults(self) -> None:
        self.faults.away = self.faults.stale_watch = False
        self.faults.denied.clear()
        self.faults.slow_s = self.faults.error_rate = self.faults.reset_rate = 0.0

    def _switch_node(self, node: str, *, on: bool) -> None:
        if self._manager is None:
            raise BadFault(f"{self.name} is not started")
        try:
            self._manager.switch_node(node, on=on)
        except MemberError as e:
            raise BadFault(f"{self.name}: {e.message}") from e


def define(client: MemberClient, serves: Mapping[str, str] | None = None) -> None:
    """Applies the definitions of the training kinds that are missing."""
    for definition in definitions_to_serve(serves or {}):
        with contextlib.suppress(MemberExists):
            client.create(CRDS.path(), definition)


def define_in(catalog: Catalog, serves: Mapping[str, str] | None = None) -> None:
    """Like `define`, but directly in the catalog of a server that has not started."""
    if (serves or {}).get(DEVICE_CLAIMS):
        catalog.serve_device_claims()
    for definition in definitions_to_serve(serves or {}):
        if catalog.of(CRDS).get("", definition["metadata"]["name"]) is None:
            catalog.create(CRDS, definition)


def definitions_to_serve(serves: Mapping[str, str]) -> Iterator[crds.Document]:
    """The definitions to serve. ``serves`` selects the version of a kind; with ``""`` the kind is not served."""
    versions = {**VERSIONS, **serves}
    for definition in crds.definitions():
        version = definition["spec"]["versions"][0]["name"]
        if versions.get(definition["metadata"]["name"], version) == version:
            yield definition
