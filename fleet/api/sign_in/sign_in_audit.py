"""Signing in and out in the audit, however it is done: a password, a link, the admin's page; done, refused or locked out.

Names that no user has are not written down: people type their passwords there. Attempts beyond the limits are refused without a
look at the password, and counted by address (`fleet.services.auditing.refused_sign_ins`).
"""

from typing import Any

from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from fleet.api.http.auditing import shown_path
from fleet.services.auditing import audit, refused_sign_ins
from fleet.services.auditing.refused_sign_ins import UNKNOWN, Refusal


@receiver(user_logged_in)
def signed_in(request: HttpRequest, user: Any, **_: Any) -> None:
    ways = {"/signin/": "by a sign-in link", "/oidc/": f"with an account of {settings.CONVOY_OIDC.issuer}"}
    message = next((way for path, way in ways.items() if request.path.startswith(path)), "")
    _note(request, "sign-in", user.get_username(), message=message)


@receiver(user_logged_out)
def signed_out(request: HttpRequest, user: Any, **_: Any) -> None:
    if user is not None:
        _note(request, "sign-out", user.get_username())


@receiver(user_login_failed)
def sign_in_failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    if request is None:
        return None
    if getattr(request, "wait_s", None):
        return refused_sign_ins.count(_address(request), Refusal.PASSWORDS)
    if (verdict := getattr(request, "second_factor", None)) is not None:
        first = "link" if request.path.startswith("/signin/") else "password"
        return _note(request, "sign-in", _known(credentials), refused=f"right {first}, {verdict.value}")
    is_locked = getattr(request, "axes_locked_out", False)
    _note(request, "sign-in", _known(credentials), refused="locked out" if is_locked else "wrong user name or password")
    return None


@receiver(user_locked_out)
def locked_out(request: HttpRequest, username: str, **_: Any) -> None:
    _note(request, "lock-out", _known({"username": username}), refused="too many failed attempts")


def _known(credentials: dict[str, Any]) -> str:
    name = str(credentials.get("username") or "")[:150]
    return name if get_user_model().objects.filter(username=name).exists() else UNKNOWN


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def _note(request: HttpRequest, verb: str, name: str, *, refused: str = "", message: str = "") -> None:
    audit.note(
        "" if refused else name,
        door="admin" if request.path.startswith("/admin/") else "console",
        address=_address(request),
        request=f"{request.method} {shown_path(request)}",
        verb=verb,
        refused=refused,
        message=message,
        kind="User",
        name=name,
    )
