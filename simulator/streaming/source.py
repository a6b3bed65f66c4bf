"""What a simulated API server asks of the component that runs the pods, for streams into them."""

import socket
import subprocess
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class NotEntered(Exception):
    """Why there is no way into the pod, in the words and with the status of a kubelet."""

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.message, self.status = message, status


@dataclass(frozen=True, slots=True)
class Entered:
    """A command that runs in a pod. The descriptors are the holder's to close."""

    process: "subprocess.Popen[bytes]"
    stdin: int | None
    stdout: int
    stderr: int | None
    """None for a terminal, which has one output."""


@runtime_checkable
class PodSource(Protocol):
    def enter(self, namespace: str, name: str, command: list[str], *, stdin: bool, tty: bool) -> Entered:
        """Starts a command in the pod's first container. Raises NotEntered. Blocks for a moment."""

    def connect(self, namespace: str, name: str, port: int) -> socket.socket:
        """A connection to the port on the pod's loopback. Raises NotEntered. Blocks for a moment."""

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """What was printed from ``offset`` on, and whether no more will come; None: no log of this pod."""
