"""Sign-in with accounts of an OpenID Connect provider: what the operator states, and which roles groups stand for. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fleet.kube import names

LONGEST = 255
"""Of an issuer and of a subject (OpenID Connect Core 2)."""
LEAD = "lead"
"""Not a role: the team lead of a node of the quota tree."""


class GroupRole(Enum):
    FLEET_ADMIN = "fleet-admin"
    QUOTA_ADMIN = "quota-admin"
    EDITOR = "editor"
    VIEWER = "viewer"
    LEAD = LEAD


_WHOLE = (GroupRole.FLEET_ADMIN, GroupRole.QUOTA_ADMIN)
_EXAMPLE = '{"ml-admins": ["fleet-admin"], "vision": ["editor:vision", "viewer", "lead:root/vision"]}'


@dataclass(frozen=True, slots=True, order=True)
class Assignment:
    """What one entry of a group stands for."""

    role: str
    target: str = ""
    """A namespace, empty for all; of a lead the path of a node."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user as the provider vouches for them, checked."""

    issuer: str
    subject: str
    username: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The settings of the provider. Without an issuer, this way of signing in is off. ``repr`` hides the secret."""

    issuer: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    label: str = ""
    username_claim: str = "preferred_username"
    username_prefix: str = ""
    groups_claim: str = "groups"
    groups: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict, hash=False)
    """Empty: roles are given by fleet admins, as to local users."""

    @property
    def is_on(self) -> bool:
        return bool(self.issuer)

    @property
    def name(self) -> str:
        """Of the provider, as the sign-in pages call it."""
        return self.label or str(urlsplit(self.issuer).hostname or "")

    def assignments(self, groups: Iterable[str]) -> frozenset[Assignment]:
        return frozenset(entry for group in groups for entry in self.groups.get(group, ()))


class OidcInvalid(ValueError):
    """A value that makes no sense; the text names the variable, its value and the remedy."""


def read_groups(text: str) -> dict[str, tuple[Assignment, ...]]:
    """The mapping of groups from JSON. Raises `OidcInvalid`."""
    if not text.strip():
        return {}
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise OidcInvalid(f"CONVOY_OIDC_GROUPS is not JSON ({e}): write it as {_EXAMPLE}") from e
    if not isinstance(parsed, dict) or not all(isinstance(entries, list) for entries in parsed.values()):
        raise OidcInvalid(f"CONVOY_OIDC_GROUPS is not an object of lists: write it as {_EXAMPLE}")
    return {group: tuple(_assignment(group, entry) for entry in entries) for group, entries in parsed.items()}


def issuer_fault(issuer: str, variable: str = "CONVOY_OIDC_ISSUER") -> str:
    """Why tokens are not fetched from this address; empty when they may be. Plain HTTP is for a provider on this machine."""
    try:
        url = urlsplit(issuer)
        host, _ = url.hostname or "", url.port
    except ValueError as e:
        return f"{variable}={issuer!r} is no address ({e}): set the https address of the provider"
    if len(issuer) > LONGEST:
        return f"{variable} is longer than {LONGEST} characters: set the address of the provider"
    if url.scheme == "https" and host and not url.username:
        return ""
    if url.scheme == "http" and _is_loopback(host):
        return ""
    return f"{variable}={issuer!r} is not an https address: set the provider's, http is for a provider on loopback only"


def _assignment(group: str, entry: object) -> Assignment:
    where = f"CONVOY_OIDC_GROUPS: {entry!r} of group {group!r}"
    name, colon, target = str(entry).partition(":")
    try:
        role = GroupRole(name)
    except ValueError as e:
        known = ", ".join(role.value for role in GroupRole)
        raise OidcInvalid(
            f"{where} names no role: use one of {known}, with :NAMESPACE or, of a lead, :root/PATH"
        ) from e
    if role is GroupRole.LEAD:
        if target.split("/")[0] != "root" or "" in target.split("/") or any(map(str.isspace, target)):
            raise OidcInvalid(f"{where} names no node: write it as lead:root/vision")
    elif colon and role in _WHOLE:
        raise OidcInvalid(f"{where}: the role is one for the whole fleet, leave the namespace out")
    elif colon and (fault := names.label_fault(target)):
        raise OidcInvalid(f"{where}: the namespace {fault}")
    return Assignment(role.value, target)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
