"""Which addresses a member's API may live on: what keeps a kubeconfig from turning us against our own network.

Link-local addresses (the metadata services of clouds live there), multicast and unspecified ones are never called.
Loopback and private ones only where the operator allows it. The address that counts is the one of the connection made,
so a name that resolves differently the second time gains nothing.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

_METADATA = frozenset({ip_address("100.100.100.200"), ip_address("fd00:ec2::254"), ip_address("168.63.129.16")})
"""Metadata services outside the link-local ranges."""


def refusal(address: str, *, private_ok: bool) -> str:
    """Why this IP address may not be called; empty when it may."""
    ip = _plain(address)
    if ip in _METADATA or ip.is_link_local:
        return f"{ip} is a link-local or metadata address"
    if ip.is_multicast or ip.is_unspecified:
        return f"{ip} is no address of a server"
    if not private_ok and not ip.is_global:
        return f"{ip} is a loopback or private address, and CONVOY_PRIVATE_MEMBERS is off"
    return ""


def server_refusal(server: str, *, private_ok: bool) -> str:
    """Why the server of this URL may not be called, by every address its name has now; empty when it may.

    A name that does not resolve is not refused here: the connection will say it better.
    """
    url = urlsplit(server)
    try:
        addresses = socket.getaddrinfo(url.hostname, url.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""
    refusals = (refusal(str(entry[4][0]), private_ok=private_ok) for entry in addresses)
    return next((each for each in refusals if each), "")


def _plain(address: str) -> IPv4Address | IPv6Address:
    """Without scope, and IPv4 dressed as IPv6 undressed."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        return ip.ipv4_mapped or ip.sixtofour or ip
    return ip
