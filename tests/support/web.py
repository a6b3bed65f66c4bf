"""The product's web process as it is served, on a port of its own, for tests that need real sockets."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


@contextmanager
def served(port: int = 0) -> Iterator[int]:
    """The port; any that is free, unless one is named."""
    from deploy.config.asgi import application

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        server = uvicorn.Server(uvicorn.Config(application, lifespan="off", log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield door.getsockname()[1]
        server.should_exit = True
        thread.join(10)
