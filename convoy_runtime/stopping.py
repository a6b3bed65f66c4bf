"""Whether the training is to stop: one flag, set by SIGTERM, by a notice on the network, or by an answer to a report."""

from __future__ import annotations

import signal
import socket
import threading
from types import FrameType
from typing import Any

PORT = 9009
"""Where kubeai listens, whose notice this understands: ``GET /stop``."""
_MOST_CLIENTS = 16
_PATIENCE_S = 2.0
_stop = False


def stop_requested() -> bool:
    """Whether this process was asked to stop. On several ranks ask `agree`, which gives all of them the same answer."""
    return _stop


def request_stop() -> None:
    """Sets the flag; it is never taken back."""
    global _stop
    _stop = True


def on_sigterm() -> None:
    """Lets SIGTERM set the flag, before what was installed for it. Only the main thread can install it."""
    if threading.current_thread() is not threading.main_thread():
        return
    former = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> Any:
        request_stop()
        return former(number, frame) if callable(former) else None

    signal.signal(signal.SIGTERM, handle)


def listen(port: int = PORT) -> int:
    """Answers notices on the port; returns it, or 0 where another process of the pod has it."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("0.0.0.0", port))  # noqa: S104 - the supervisor of the cluster comes from outside the pod
        server.listen(_MOST_CLIENTS)
    except OSError:
        server.close()
        return 0
    threading.Thread(target=_serve, args=(server,), name="convoy-notices", daemon=True).start()
    return int(server.getsockname()[1])


def _serve(server: socket.socket) -> None:
    places = threading.BoundedSemaphore(_MOST_CLIENTS)
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        # A client that says nothing keeps its own thread, and none of the others.
        if not places.acquire(timeout=_PATIENCE_S):
            client.close()
            continue
        threading.Thread(target=_answer, args=(client, places), name="convoy-notice", daemon=True).start()


def _answer(client: socket.socket, places: threading.BoundedSemaphore) -> None:
    try:
        with client:
            client.settimeout(_PATIENCE_S)
            if client.recv(4096).startswith(b"GET /stop "):
                request_stop()
                # Without a status line, as kubeai answers: these two bytes are what "heard" means.
                client.sendall(b"ok")
    except OSError:
        return
    finally:
        places.release()
