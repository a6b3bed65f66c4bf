"""One simulated member cluster: an API server of Python, the controllers that bring it to life, and its faults.

The controllers reach the server through its port like everybody else, but no fault hits them: what runs goes on running and
finishing while the API is away or flaky for everybody outside.
"""

import contextlib
import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from fleet.kube import crds
from fleet.kube.resources import CRDS
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberError, MemberExists
from simulator import images
from simulator.apiserver import metrics
from simulator.apiserver.catalog import Catalog
from simulator.apiserver.faults import Faults
from simulator.apiserver.server import ApiServer
from simulator.controller_manager import ControllerManager, Shape
from simulator.fault_parser import BadFault, Fault
from simulator.machinery.clock import WallClock
from simulator.node.logs import Logs

VERSIONS = {
    "mpijobs.kubeflow.org": "v2beta1",
    "reservations.scheduling.koordinator.sh": "",
    "queues.scheduling.volcano.sh": "",
}
"""What a member serves of a kind by default: of two versions this one, of an add-on none."""
CONNECTIONS = 48
"""Kept alive between the controllers and the server: one for each watch and each worker."""


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
        self._life: ControllerManager | None = None

    def start(self) -> None:
        """Returns when the API answers and everything behind it works."""
        self._serve()
        (self.home / "kubeconfig.yaml").touch(mode=0o600)
        (self.home / "kubeconfig.yaml").write_text(yaml.safe_dump(self.kubeconfig(), sort_keys=False))
        self._client = MemberClient(self._server.inner_access(), pool=CONNECTIONS)
        self._life = ControllerManager(
            self.name,
            self._client,
            self.home,
            self._shape,
            clock=self._clock,
            start_delay_s=self._start_delay_s,
            version=self._version,
        )
        self._life.start()

    def _serve(self) -> None:
        define_in(self._server.catalog, self._serves)
        self._server.start()

    def rotate(self, token: str) -> None:
        """Refuses the credentials it has given out so far."""
        self._server.rotate(token)

    def stop(self) -> None:
        """Ends the server and every process of its pods; what there was is there again after a start."""
        if self._life:
            self._life.leave()
            self._life.stop()
        if self._client:
            self._client.close()
        self._server.stop()

    def access(self) -> Access:
        return self._server.access()

    def kubeconfig(self) -> dict[str, object]:
        return self._server.kubeconfig()

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """The log source of the API server."""
        logs: Logs | None = self._life.logs if self._life else None
        return logs.read(namespace, name, offset) if logs else None

    def disturb(self, fault: Fault) -> str:
        """Does it; says what was done. BadFault: there is no such node or running pod."""
        match fault.kind:
            case "away":
                self.faults.away = True
            case "back":
                self._calm()
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
            case "deny":
                self.faults.denied.add(fault.target)
            case "crash-pod":
                if not self._life or not self._life.crash_pod(fault.target, int(fault.amount)):
                    raise BadFault(f"no pod {fault.target} runs on {self.name}")
        return f"{self.name}: {fault.kind} {fault.target or (f'{fault.amount:g}' if fault.amount else '')}".rstrip()

    def _calm(self) -> None:
        self.faults.away = self.faults.stale_watch = False
        self.faults.denied.clear()
        self.faults.slow_s = self.faults.error_rate = self.faults.reset_rate = 0.0

    def _switch_node(self, node: str, *, on: bool) -> None:
        if self._life is None:
            raise BadFault(f"{self.name} is not started")
        try:
            self._life.switch_node(node, on=on)
        except MemberError as e:
            raise BadFault(f"{self.name}: {e.message}") from e


def define(client: MemberClient, serves: Mapping[str, str] | None = None) -> None:
    """Applies the definitions of the training kinds; those there already stay."""
    for definition in chosen(serves or {}):
        with contextlib.suppress(MemberExists):
            client.create(CRDS.path(), definition)


def define_in(catalog: Catalog, serves: Mapping[str, str] | None = None) -> None:
    """The same without the way over the network, for a server that has not started."""
    for definition in chosen(serves or {}):
        if catalog.of(CRDS).get("", definition["metadata"]["name"]) is None:
            catalog.create(CRDS, definition)


def chosen(serves: Mapping[str, str]) -> Iterator[crds.Document]:
    """``serves`` chooses the version of a definition, or with ``""`` that it is not served at all."""
    versions = {**VERSIONS, **serves}
    for definition in crds.definitions():
        version = definition["spec"]["versions"][0]["name"]
        if versions.get(definition["metadata"]["name"], version) == version:
            yield definition
