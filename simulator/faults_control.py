"""The door through which a running simulator is disturbed: a unix socket in its home, one line of JSON each way.

Only the owner of the home can reach it. The caller's side is `send`; what a fault does is the member's business.
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
"""A unix socket's address holds barely more than this; longer paths are reached through the open folder."""

Handler = Callable[[str, list[str]], str]
"""(member, words of the fault) -> what was done; ValueError with words for a person when it cannot be."""


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
            asked = json.loads(connection.makefile("rb").readline(65536))
            said = self._handler(str(asked["member"]), [str(word) for word in asked["words"]])
        except (ValueError, KeyError, TypeError) as e:
            return {"ok": False, "said": str(e)}
        return {"ok": True, "said": said}


def send(home: Path, member: str, words: list[str], *, timeout_s: float = 15.0) -> str:
    """Disturbs a running simulator; ValueError when it refuses, OSError when none is running."""
    with socket.socket(socket.AF_UNIX) as connection, _address(home / SOCKET) as address:
        connection.settimeout(timeout_s)
        connection.connect(address)
        connection.sendall(json.dumps({"member": member, "words": words}).encode() + b"\n")
        answer = json.loads(connection.makefile("rb").readline())
    if not answer["ok"]:
        raise ValueError(answer["said"])
    return str(answer["said"])


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
