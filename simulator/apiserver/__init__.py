"""An API server in Python: the server of `fleet.kube.server` over a store in memory and a file, on a TLS port of loopback."""

from simulator.apiserver.server import ApiServer

__all__ = ["ApiServer"]
