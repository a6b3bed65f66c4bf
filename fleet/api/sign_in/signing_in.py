"""Bounds the attempts to sign in as one user, wherever they come from; addresses are bounded in front of every door.

A lock-out by name alone could be caused by any stranger, so this one ends with the attempts. Counted in this process alone.
"""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from fleet.limits.buckets import Buckets

PER_MINUTE = 30
ATTEMPTS = Buckets(PER_MINUTE / 60, PER_MINUTE)


class LimitByUser:
    """Stands before the backends that look at passwords, so that no password is looked at beyond the limit."""

    def authenticate(self, request: HttpRequest | None, username: str | None = None, **_: Any) -> None:
        if username and (wait := ATTEMPTS.take(username[:150])):
            if request is not None:
                request.wait_s = wait  # type: ignore[attr-defined]  # read by the view
            raise PermissionDenied
