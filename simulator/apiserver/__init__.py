"""An API server made of Python: the wire grammar of `fleet.kube` over a store, on a real TLS port on loopback."""

from simulator.apiserver.server import ApiServer

__all__ = ["ApiServer"]
