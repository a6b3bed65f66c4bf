"""The control socket of a running simulator: a unix socket in its home that accepts faults, one line of JSON each way.

Only the owner of the home can reach it. `send` is the client; what a fault does is implemented by the member.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

SOCKET = "control.sock"
LONGEST_PATH = 100
"""Longer paths do not fit into a unix socket's address. Such a socket is addressed through an open descriptor of its folder."""

Handler = Callable[[str, list[str]], str]
"""Takes the member and the words of the fault, and returns a description. Raises ValueError with a message for the user."""


class ControlServer:
    def __init__(self, home: Path, handler: Handler) -> None:
        self._handler = handler
        self._path = home / SOCKET
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        with _address(self._path) as address:
            self._socket.bind(address)
        self._path.chmod(0o600)
        self._socket.listen(8)
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(10)
                connection.sendall(json.dumps(self._answer(connection)).encode() + b"\n")

    def _answer(self, connection: socket.socket) -> dict[str, object]:
        try:
            request = json.loads(connection.makefile("rb").readline(65536))
            message = self._handler(str(request["member"]), [str(word) for word in request["words"]])
        except (ValueError, KeyError, TypeError) as e:
            return {"ok": False, "message": str(e)}
        return {"ok": True, "message": message}


def send(home: Path, member: str, words: list[str], *, timeout_s: float = 15.0) -> str:
    """Injects a fault into a running simulator. Raises ValueError if it is refused, OSError if no simulator is running."""
    with socket.socket(socket.AF_UNIX) as connection, _address(home / SOCKET) as address:
        connection.settimeout(timeout_s)
        connection.connect(address)
        connection.sendall(json.dumps({"member": member, "words": words}).encode() + b"\n")
        answer = json.loads(connection.makefile("rb").readline())
    if not answer["ok"]:
        raise ValueError(answer["message"])
    return str(answer["message"])


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
