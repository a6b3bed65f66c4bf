"""The switch of a simulated member's network, its own process: ``python -m simulator.node.runtime.switch GATEWAY/PREFIX``.

It lives in a network namespace with nothing but a bridge, so that nothing of this machine is reachable and no address of
this machine is taken. Standard input is one end of a Unix socket. It first answers ``ready`` with a listening socket at the
gateway's port 443, to which the simulator forwards the member's API; then, for every address it reads, it makes a namespace
with ``eth0`` at that address on the bridge and answers ``ok`` with the descriptors to enter, in order. A network lasts while
a descriptor or a process holds it. Ends when the socket does; a failure is answered in words. Linux only.
"""

import ipaddress
import os
import socket
import sys

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from simulator.node.runtime import launcher
from simulator.node.runtime.network import API_PORT

BRIDGE = "br0"


def main(network: str) -> int:
    channel = socket.socket(fileno=os.dup(0))
    try:
        gateway = ipaddress.ip_interface(network)
        switch = Switch(gateway)
        socket.send_fds(channel, [b"ready"], [switch.listener.fileno()])
    except (OSError, NetlinkError) as e:
        channel.send(_words(e))
        return launcher.FAILED
    while address := channel.recv(64).decode():
        try:
            descriptors = switch.attach(ipaddress.ip_interface(f"{address}/{gateway.network.prefixlen}"))
        except (OSError, NetlinkError) as e:
            channel.send(_words(e))
            continue
        socket.send_fds(channel, [b"ok"], [*switch.owner, descriptors])
        os.close(descriptors)
    return 0


def _words(error: OSError | NetlinkError) -> bytes:
    name = error.filename if isinstance(error, OSError) and error.filename else "netlink"
    return f"{name}: {os.strerror(error.errno or 0) if isinstance(error, OSError) else error}".encode()[:200]


class Switch:
    """The bridge, and the namespaces that were attached to it."""

    def __init__(self, gateway: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> None:
        self.owner: list[int] = []
        """The descriptor of the user namespace that owns the networks; empty for root, who needs none."""
        if os.geteuid():
            launcher.make_user_namespace()
            self.owner = [os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC)]
        self._gateway = gateway
        self._home = _new_network()
        self._route = IPRoute()
        self._links = 0
        self._route.link("add", ifname=BRIDGE, kind="bridge")
        self._bridge = self._route.link_lookup(ifname=BRIDGE)[0]
        _address(self._route, self._bridge, gateway)
        self.listener = socket.create_server((str(gateway.ip), API_PORT), backlog=64)

    def attach(self, address: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> int:
        """The descriptor of a new network namespace whose eth0 has the address."""
        network = _new_network()
        try:
            self._connect(network, address)
        except (OSError, NetlinkError):
            os.close(network)
            raise
        finally:
            launcher.call("setns", self._home, launcher.NEW_NET)
        return network

    def _connect(self, network: int, address: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> None:
        with IPRoute() as inner:
            self._links += 1
            port = f"pod{self._links}"
            peer = {"ifname": "eth0", "net_ns_fd": network, "address": _hardware_address(address.ip)}
            self._route.link("add", ifname=port, kind="veth", peer=peer)
            index = self._route.link_lookup(ifname=port)[0]
            self._route.link("set", index=index, master=self._bridge, state="up")
            _address(inner, inner.link_lookup(ifname="eth0")[0], address)
            inner.route("add", dst="default", gateway=str(self._gateway.ip))


def _new_network() -> int:
    """Enters a new network namespace with its loopback up, and returns its descriptor."""
    launcher.call("unshare", launcher.NEW_NET)
    launcher.raise_loopback()
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _address(route: IPRoute, index: int, address: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> None:
    route.addr("add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen)
    route.link("set", index=index, state="up")


def _hardware_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The same for every network at the address, so that what others remember of a restarted pod stays true."""
    return ":".join(f"{byte:02x}" for byte in (2, 0, *address.packed[-4:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
