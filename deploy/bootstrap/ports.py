"""Finds a port to listen on: the one asked for, else the next free one above it."""

import socket

from deploy.bootstrap.problems import Problem

HOST = "127.0.0.1"
REACH = 100


def is_free(port: int, host: str = HOST) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def first_free(wanted: int, host: str = HOST) -> int:
    for port in range(wanted, min(wanted + REACH, 65536)):
        if is_free(port, host):
            return port
    raise Problem(
        f"No port from {wanted} to {wanted + REACH - 1} is free on {host}: set CONVOY_PORT or CONVOY_KUBE_PORT."
    )


def any_free(kept: int, host: str = HOST) -> int:
    """The kept one while it is free, else whichever the system gives."""
    if kept and is_free(kept, host):
        return kept
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
