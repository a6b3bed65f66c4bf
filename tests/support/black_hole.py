"""An address that takes every connection and never answers, like a host behind a firewall that drops what it lets in."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fleet.models import Cluster
from fleet.services.members import member_clients


@contextmanager
def black_hole() -> Iterator[str]:
    """Its URL. The system takes the connections; nothing here ever reads from them."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


def swallow(cluster: Cluster, server: str) -> None:
    """The member's API is there from now on, as far as dispatch knows; its health checks are none of the tests' business."""
    access = replace(member_clients.access_of(cluster), server=server)
    Cluster.objects.filter(pk=cluster.pk).update(server=server, access=member_clients.stored(access))
