"""The network of one simulated member, for its kubelet: the addresses of pods, and the member's API inside the network.

A `switch` process creates the network when the first pod needs it. If this machine cannot create one, the pods of each job
share a loopback (`isolation.Networks`), and `fault` has the reason.
"""

import os
import selectors
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import simulator

API_PORT = 443
"""Of the gateway."""
_PACKAGE = Path(simulator.__file__).parents[1]
_CONNECTIONS = 32
"""How many connections of one pod are forwarded to the API at a time. More are closed, so that no pod blocks the others."""
_CHUNK = 65536


class MemberNetwork:
    """Addresses 10.SUBNET.0.0/16; the gateway, 10.SUBNET.0.1, answers for the member's API at port 443."""

    def __init__(self, subnet: int, server: str) -> None:
        """``server``: the URL of the member's API on this machine."""
        self.gateway = f"10.{subnet}.0.1"
        self._api = _host_and_port(server)
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._connections: Counter[str] = Counter()
        """The number of open connections by the pod's address."""
        self._fault: str | None = None

    @property
    def fault(self) -> str:
        """Why this machine cannot create the network. Empty if it can. The first call creates the network."""
        with self._lock:
            if self._fault is None:
                self._fault = self._start() if sys.platform == "linux" else "it does not run Linux"
            return self._fault

    @contextmanager
    def of(self, address: str) -> Iterator[tuple[int, ...]]:
        """Descriptors of the namespaces to enter for a pod with this address. Raises OSError if the kernel creates none."""
        with self._lock:
            if self._channel is None:
                raise OSError(0, self._fault or "the network is closed", "switch")
            answer, descriptors = self._ask(address)
        if answer != "ok":
            raise OSError(0, answer, "switch")
        try:
            yield descriptors
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def close(self) -> None:
        with self._lock:
            if self._channel is not None:
                self._channel.close()
                self._channel, self._fault = None, "the network is closed"
        if self._process is not None:
            self._process.wait(10)

    def _ask(self, address: str) -> tuple[str, tuple[int, ...]]:
        """The switch's answer. A switch that has ended is forgotten: the next pod gets a new one."""
        assert self._channel is not None  # noqa: S101
        try:
            self._channel.send(address.encode())
            answer, descriptors = self._receive()
        except OSError:
            answer, descriptors = "", ()
        if not answer:
            self._channel.close()
            self._channel = self._fault = None
        return answer or "the switch has ended", descriptors

    def _start(self) -> str:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "simulator.node.runtime.switch", f"{self.gateway}/16"],
                env={},
                cwd=_PACKAGE,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._channel = ours
        answer, descriptors = self._receive()
        if answer != "ready":
            ours.close()
            self._channel = None
            return answer or "the switch of its network does not start"
        listener = socket.socket(fileno=descriptors[0])
        threading.Thread(target=self._forward, args=(listener, ours), name="pods-api", daemon=True).start()
        return ""

    def _receive(self) -> tuple[str, tuple[int, ...]]:
        assert self._channel is not None  # noqa: S101
        words, descriptors, _, _ = socket.recv_fds(self._channel, 256, 2, socket.MSG_CMSG_CLOEXEC)
        return words.decode(), tuple(descriptors)

    def _forward(self, listener: socket.socket, channel: socket.socket) -> None:
        """Takes connections of pods as long as the switch of this channel is the network's."""
        with listener:
            listener.settimeout(1.0)
            while self._channel is channel:
                with suppress(TimeoutError):
                    connection, (address, _) = listener.accept()
                    threading.Thread(target=self._carry, args=(connection, address), daemon=True).start()

    def _carry(self, pod: socket.socket, address: str) -> None:
        """One connection to the API, byte by byte as it comes: TLS ends at the API server."""
        with pod:
            with self._lock:
                self._connections[address] += 1
                too_many = self._connections[address] > _CONNECTIONS
            try:
                if not too_many:
                    with suppress(OSError), socket.create_connection(self._api, 10) as api:
                        _exchange(pod, api)
            finally:
                with self._lock:
                    self._connections[address] -= 1
                    self._connections += Counter()


def _host_and_port(server: str) -> tuple[str, int]:
    url = urlsplit(server)
    return url.hostname or "", url.port or 443


def _exchange(one: socket.socket, other: socket.socket) -> None:
    """Hands on what either side sends, until one side ends."""
    with selectors.DefaultSelector() as ready:
        for source, target in ((one, other), (other, one)):
            source.setblocking(True)
            ready.register(source, selectors.EVENT_READ, target)
        while True:
            for key, _ in ready.select():
                chunk = key.fileobj.recv(_CHUNK)  # type: ignore[union-attr]
                if not chunk:
                    return
                key.data.sendall(chunk)
