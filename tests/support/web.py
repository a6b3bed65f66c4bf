"""The product's web process as it is served, on a port of its own, for tests that need real sockets."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

_usual = 0
"""The port of the last server here. A browser keeps what it has compiled by the address it came from."""


@contextmanager
def served(port: int = 0, *, unsent: int = 0, **how: Any) -> Iterator[int]:
    """The port: the same one each time as far as it is free, unless one is named.

    Of what a client has not taken the kernel keeps so many bytes, if they are named.
    """
    global _usual
    from deploy.config.asgi import application

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if unsent:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, unsent)
        _bind(door, *([port] if port else [_usual, 0]))
        _usual = door.getsockname()[1]
        how |= {"lifespan": "off", "log_level": "warning", "ws": "deploy.config.websockets:Protocol"}
        server = uvicorn.Server(uvicorn.Config(application, **how))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield door.getsockname()[1]
        server.should_exit = True
        thread.join(60)


def _bind(door: socket.socket, *ports: int) -> None:
    """To the first that is free; OSError: none is."""
    *wanted, last = ports
    for port in wanted:
        with contextlib.suppress(OSError):
            door.bind(("127.0.0.1", port))
            return
    door.bind(("127.0.0.1", last))
