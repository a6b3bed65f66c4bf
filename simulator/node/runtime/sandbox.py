"""The sandbox of a pod's process: its address in the member's network, the names it resolves, and its access to the API.

A pod gets its address when its node accepts it, so that the pods of a gang can resolve each other before the first one starts.
`kubelet` decides when pods start and end.
"""

import base64
import contextlib
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from fleet.kube.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from fleet.member.errors import MemberError, MemberMissing
from simulator import images
from simulator.machinery.clock import stamp
from simulator.machinery.controller import Cluster
from simulator.machinery.objects import Object, name_of, namespace_of, uid_of
from simulator.node.runtime import names
from simulator.node.runtime.appetite import Bounds, machine_fault
from simulator.node.runtime.isolation import Isolation
from simulator.node.runtime.network import API_PORT, MemberNetwork
from simulator.node.runtime.processes import InCluster, Launch, Ports, Process, add_late_secrets, prepare

TOKEN_S = 30 * 86400
"""How long a token is valid. It is not renewed, because no process of a simulated pod runs longer."""
_PER_THIRD_OCTET = 250


class Sandboxes:
    """The sandboxes of one simulated member's process pods."""

    def __init__(
        self, cluster: Cluster, home: Path, isolation: Isolation, *, subnet: int, api_host: str, bounds: Bounds
    ) -> None:
        """``api_host``: a name on the certificate of the member's API server."""
        self._cluster, self._home, self._isolation, self._bounds = cluster, home, isolation, bounds
        self._pods = cluster.informer(PODS)
        self.services = cluster.informer(SERVICES)
        self._network = MemberNetwork(subnet, cluster.client.access.server)
        self._subnet, self._api_host = subnet, api_host
        self._ports = Ports()
        self._images = images.parse(os.environ)
        self._lock = threading.Lock()
        self._addresses: dict[str, str] = {}
        self._taken: set[str] | None = None
        """None before the first pod: then those of all pods there are, as after a restart of the simulator."""
        self._last = 0
        self._hosts: dict[str, tuple[Object, Path]] = {}
        """By uid: the running pods whose names are kept up to date."""

    def close(self) -> None:
        self._network.close()

    def address(self, pod: Object) -> str:
        """The pod's address, from the first time it is asked for until `forget`."""
        with self._lock:
            if (known := self._addresses.get(uid_of(pod))) is None:
                known = _reported(pod) or self._free_address()
                self._addresses[uid_of(pod)] = known
            return known

    def forget(self, uid: str) -> None:
        with self._lock:
            address = self._addresses.pop(uid, None)
            if self._taken is not None and address is not None:
                self._taken.discard(address)
            self._hosts.pop(uid, None)

    def has_programs(self, pod: Object, init: Object) -> bool:
        """Whether an init container can run here: in the image of the pod's own, or in one that stands for programs here."""
        return init.get("image") == pod["spec"]["containers"][0].get("image") or init.get("image") in self._images

    def launch(self, pod: Object, *, restart: int, init: Object | None = None) -> Process:
        """Starts the pod's process, or that of an init container.

        Raises LookupError or ValueError with a message for the pod's status.
        """
        refusal = self._isolation.refusal(namespace_of(pod), self._home)
        if refusal := refusal or machine_fault(self._home, self._bounds):
            raise ValueError(refusal)
        networked = not self._network.fault
        ports, access = (None, self._access(pod)) if networked else (self._ports, None)
        image = (init or pod["spec"]["containers"][0]).get("image") or ""
        programs = self._images.get(image, Path(sys.prefix))
        launch = prepare(
            pod, self._home, self._fetch, ports, restart=restart, cluster=access, programs=programs, init=init
        )
        try:
            if not networked:
                fault = self._network.fault
                words = f"This machine cannot create a network for pods ({fault}): the pods of a job share a loopback."
                self.warn(pod, "LoopbackNetwork", words)
                return Process(launch, self._isolation)
            self._name(pod, launch)
            return Process(launch, self._isolation, self._network.of(self.address(pod)))
        except OSError as e:
            raise ValueError(f"cannot isolate it: {e.filename}: {e.strerror}") from e

    def refresh(self) -> None:
        """Brings the names of every running pod up to date, and its optional Secrets that exist by now."""
        with self._lock:
            open_files = list(self._hosts.values())
        for pod, path in open_files:
            with contextlib.suppress(FileNotFoundError):  # the pod was deleted, and its files with it
                self._write(pod, path)
                with contextlib.suppress(MemberError):
                    add_late_secrets(pod, path.parent, self._fetch)

    def _free_address(self) -> str:
        if self._taken is None:
            self._taken = {*self._addresses.values(), *map(_reported, self._pods.all())}
        while True:
            self._last += 1
            third, fourth = divmod(self._last % (_PER_THIRD_OCTET**2), _PER_THIRD_OCTET)
            address = f"10.{self._subnet}.{third}.{fourth + 2}"
            if address not in self._taken:
                self._taken.add(address)
                return address

    def _name(self, pod: Object, launch: Launch) -> None:
        assert launch.hosts is not None  # noqa: S101
        self._write(pod, launch.hosts)
        with self._lock:
            self._hosts[uid_of(pod)] = (pod, launch.hosts)

    def _write(self, pod: Object, path: Path) -> None:
        """Writes the hosts file in place, because it is mounted into the pod."""
        services = self.services.all()
        namespaces = {namespace_of(pod), *(namespace_of(service) for service in services)}
        pods = [other for other in self._pods.all() if namespace_of(other) in namespaces]
        text = names.hosts_file(pod, self._addressed(pods), services, self._network.gateway, self._api_host)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o644)

    def _addressed(self, pods: list[Object]) -> list[tuple[Object, str]]:
        with self._lock:
            known = [(pod, self._addresses.get(uid_of(pod)) or _reported(pod)) for pod in pods]
        return [(pod, address) for pod, address in known if address]

    def _access(self, pod: Object) -> InCluster | None:
        """The pod's access to the API. None if the pod does not mount a token, or its ServiceAccount gets none."""
        spec, namespace = pod["spec"], namespace_of(pod)
        if spec.get("automountServiceAccountToken") is False:
            return None
        path = SERVICE_ACCOUNTS.path(namespace, spec.get("serviceAccountName") or "default", "token")
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_S},
        }
        try:
            token = self._cluster.client.create(path, request)["status"]["token"]
        except MemberError:
            return None
        return InCluster(self._api_host, API_PORT, token, self._cluster.client.access.ca_pem, namespace)

    def warn(self, pod: Object, reason: str, words: str) -> None:
        """Records an event on the pod."""
        involved = {"kind": "Pod", "apiVersion": "v1", "name": name_of(pod), "namespace": namespace_of(pod)}
        now = stamp(self._cluster.clock.now())
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name_of(pod)}.", "namespace": namespace_of(pod)},
            "involvedObject": {**involved, "uid": uid_of(pod)},
            "type": "Warning",
            "reason": reason,
            "message": words,
            "source": {"component": "kubelet"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with contextlib.suppress(MemberError):
            self._cluster.client.create(EVENTS.path(namespace_of(pod)), event)

    def _fetch(self, kind: str, namespace: str, name: str) -> Mapping[str, str]:
        resource = CONFIG_MAPS if kind == "ConfigMap" else SECRETS
        try:
            data = self._cluster.client.get(resource.path(namespace, name)).get("data") or {}
        except MemberMissing:
            raise LookupError(f"{kind} {name!r} is not found") from None
        if kind == "ConfigMap":
            return {str(k): str(v) for k, v in data.items()}
        return {str(k): base64.b64decode(v).decode("utf-8", "replace") for k, v in data.items()}


def _reported(pod: Object) -> str:
    """The address in the pod's status; empty before it has one."""
    return str((pod.get("status") or {}).get("podIP") or "")
