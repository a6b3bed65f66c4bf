"""Who asks: the user behind credentials as far as a door has checked them, else the credentials, else the address.

Whether a user may do what is asked is no question of this module.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any

Scope = dict[str, Any]

KEPT = 10_000
"""Callers that are remembered; beyond that those that asked longest ago are forgotten."""


class Users:
    """The user behind credentials, as far as a door has checked them. It only counts: what a caller may do is asked anew."""

    def __init__(self, kept: int = KEPT) -> None:
        self._users: OrderedDict[bytes, str] = OrderedDict()
        self._kept = kept

    def learn(self, authorization: bytes, user: Hashable) -> None:
        """Call once the header has been checked; from any thread."""
        self._users[_digest(authorization)] = f"user {user}"
        while len(self._users) > self._kept:
            with suppress(KeyError):  # another thread made room at the same moment
                self._users.popitem(last=False)

    def find(self, digest: bytes) -> str | None:
        """The user, as far as credentials of this digest have been checked."""
        return self._users.get(digest)


USERS = Users()


def address_of(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def caller_of(scope: Scope) -> tuple[Hashable, Hashable]:
    """The caller, and its origin, which bounds all callers of one origin together.

    That is the address where the credentials have not been checked: anybody can make them up. Users whose credentials were
    checked share nothing by their address, which is that of a load balancer for all of them where one is in front.
    """
    credentials, address = _credentials(scope), address_of(scope)
    if not credentials:
        return address, address
    digest = _digest(credentials)
    caller = USERS.find(digest)
    return (digest, address) if caller is None else (caller, caller)


def _credentials(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bytes(value)
    for name, value in scope["headers"]:
        if name == b"cookie" and b"sessionid=" in value:
            return _session(value)
    return b""


def _digest(credentials: bytes) -> bytes:
    return hashlib.sha256(credentials).digest()


def _session(cookies: bytes) -> bytes:
    try:
        cookie = SimpleCookie(cookies.decode("latin-1")).get("sessionid")
    except CookieError:
        return cookies
    return cookie.value.encode("latin-1") if cookie else cookies
