"""A real member: kube-apiserver, the simulator's controllers as its clients, and a line to the fleet that can be cut."""

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import yaml

from fleet.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    CRDS,
    MPI_JOBS_V1,
    NAMESPACES,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    TRAINING_RUNTIMES,
    Resource,
)
from fleet.member.client import MemberClient, Object
from jobs.kinds import registry
from simulator.controller_manager import ControllerManager, Shape
from simulator.machinery.clock import WallClock
from simulator.member import define
from simulator.node.nodes import Pool
from tests.realkube.control_plane import START_S, Etcd, RealControlPlane, answers
from tests.realkube.kubelet import KubeletDoor
from tests.realkube.line import Line

VERSION = "v1.20.2"
TIME_SCALE = 20.0
_CONNECTIONS = 48
ACCOUNT_MANIFEST = Path("deploy/member-manifests/convoy-fleet.yaml")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
         "rules": [{"level": "Metadata", "verbs": ["create", "delete", "get", "list"]}]}  # fmt: skip


class RealMember:
    """Shared by all tests of a session. Each begins with `clear` and uses a namespace of its own."""

    def __init__(self, name: str, home: Path, etcd: Etcd, *gpus: int, keeps_audit: bool = False) -> None:
        """``gpus``: of each node; ``keeps_audit``: its API server writes down who asked for what."""
        self.name, self._home = name, home / name
        self._audit_log = home / f"{name}-audit.log"
        flags = self._audit_flags(home) if keeps_audit else ()
        self._pools = tuple(Pool(f"pool{i}", 1, gpus=count) for i, count in enumerate(gpus))
        self.plane = RealControlPlane(self._home, etcd, "--kubelet-preferred-address-types=InternalIP", *flags)
        self.line = Line(self.plane.port)
        self._started = ExitStack()

    def start(self) -> None:
        """Returns when the API server answers, the kinds are served and every controller works."""
        self._started.callback(self.plane.stop)  # Before it starts: what has begun is ended also where the rest fails.
        self.plane.start()
        self.client = MemberClient(self.plane.access(), pool=_CONNECTIONS)
        self._started.callback(self.client.close)
        for definition in _released_definitions():
            self.client.create(CRDS.path(), definition)
        define(self.client)
        for resource in _kinds():
            _await(partial(answers, partial(self.client.list, resource.path())))
        self._install_account()
        self.plane.start_controllers()
        clock, shape = WallClock(TIME_SCALE), Shape(self._pools)
        self._life = ControllerManager(
            self.name, self.client, self._home, shape, clock=clock, start_delay_s=1, version=VERSION
        )
        self._started.callback(self._life.stop)
        self._life.start()
        self._kubelet = KubeletDoor(self._life.logs, self._home)
        self._kubelet.start()
        self._started.callback(self._kubelet.stop)
        self._show_kubelet()
        self.line.start()
        self._started.callback(self.line.stop)

    def audit(self) -> list[Object]:
        """What its API server was asked and has answered, the oldest first."""
        return [json.loads(line) for line in self._audit_log.read_text().splitlines()]

    def _audit_flags(self, home: Path) -> tuple[str, ...]:
        policy = home / f"{self.name}-audit.yaml"
        policy.write_text(json.dumps(AUDIT))
        return f"--audit-policy-file={policy}", f"--audit-log-path={self._audit_log}"

    def stop(self) -> None:
        """At the end of a test: the fleet reaches it again; the servers stay for the next one."""
        self.line.mend()

    def close(self) -> None:
        self._started.close()

    def clear(self) -> None:
        """Removes the jobs, runtimes and pods of nobody that the test before left, and waits until the pods are gone."""
        for resource in (*_kinds(), TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
            for item in self.client.list(resource.path())["items"]:
                path = resource.path(item["metadata"].get("namespace", ""), item["metadata"]["name"])
                answers(partial(self.client.delete, path, propagation="Background"))
        for pod in self.client.list(PODS.path())["items"]:
            if not pod["metadata"].get("ownerReferences"):
                answers(partial(self.client.delete, PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"])))
        _await(lambda: not self.client.list(PODS.path())["items"])

    def finish(self, pod: str) -> bool:
        """A pod that runs succeeds now, however long it was to run. False if it does not run."""
        return self._life.crash_pod(pod, 0)

    def kubeconfig(self) -> dict:
        """By the line, with the account that a member has for the fleet and no other right."""
        document = self.plane.kubeconfig(self.line.port)
        path = SERVICE_ACCOUNTS.path("convoy-system", "convoy-fleet", "token")
        status = self.client.create(path, {"spec": {"expirationSeconds": 24 * 3600}})["status"]
        document["users"][0]["user"] = {"token": status["token"]}
        return document

    def config_maps(self, namespace: str) -> set[str]:
        """Names of those in it that no controller of Kubernetes made."""
        names = {item["metadata"]["name"] for item in self.client.list(CONFIG_MAPS.path(namespace))["items"]}
        return names - {"kube-root-ca.crt"}

    def _install_account(self) -> None:
        for document in yaml.safe_load_all(ACCOUNT_MANIFEST.read_text()):
            namespace = document["metadata"].get("namespace", "")
            path = {
                "Namespace": NAMESPACES.path(),
                "ServiceAccount": SERVICE_ACCOUNTS.path(namespace),
                "ClusterRole": f"{_RBAC}/clusterroles",
                "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
                "Role": f"{_RBAC}/namespaces/{namespace}/roles",
                "RoleBinding": f"{_RBAC}/namespaces/{namespace}/rolebindings",
            }[document["kind"]]
            self.client.create(path, document)

    def _show_kubelet(self) -> None:
        """Where the API server finds the kubelet of each node."""
        door = {"daemonEndpoints": {"kubeletEndpoint": {"Port": self._kubelet.port}}}
        addresses = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}
        for node in self.client.list(NODES.path())["items"]:
            path = NODES.path(name=node["metadata"]["name"], subresource="status")
            self.client.merge_patch(path, {"status": door | addresses})


def _kinds() -> list[Resource]:
    """The served ones: of the two versions of MPIJob a member has one."""
    return [kind.resource for kind in registry.everything() if kind.resource != MPI_JOBS_V1]


def _released_definitions() -> list[Object]:
    """CustomResourceDefinitions of the folder that REALKUBE_CRDS names: an operator's own, in the place of the shipped ones."""
    folder = os.environ.get("REALKUBE_CRDS")
    return [yaml.safe_load(file.read_text()) for file in sorted(Path(folder).glob("*.yaml"))] if folder else []


def _await(true: Callable[[], object]) -> None:
    end = time.monotonic() + START_S
    while not true():
        assert time.monotonic() < end, "the member is not as it has to be in time"
        time.sleep(0.05)
