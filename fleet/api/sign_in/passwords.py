"""Passwords with a second factor beside them, wherever one is taken: the console, the command line and the admin's page."""

from collections.abc import Mapping
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.utils import timezone

from fleet.services.authorization import second_factors
from fleet.services.authorization.passkeys import Site
from fleet.services.authorization.second_factors import Proof, Verdict

BACKEND = f"{__name__}.PasswordBackend"
"""By which sessions name it, however the user signed in."""
_ASKING = (Verdict.WANTED, Verdict.ENROLMENT_WANTED)


def site_of(request: HttpRequest) -> Site:
    """Where the browser is: the host was checked against the allowed ones."""
    return Site(f"{request.scheme}://{request.get_host()}")


class PasswordBackend(ModelBackend):
    """Django's, and then the second factor; what is missing is left on the request as ``second_factor`` for the view."""

    def authenticate(  # type: ignore[override]  # Django hands on whatever credentials a view has
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        code: str = "",
        passkey: Mapping[str, str] | None = None,
        **more: Any,
    ) -> AbstractBaseUser | None:
        user = super().authenticate(request, username=username, password=password)
        if user is None:
            return None
        proof = Proof(code, passkey, site_of(request) if request is not None else Site(""))
        verdict = second_factors.check(user, proof, now=timezone.now())
        if request is not None:
            request.second_factor, request.second_factor_user = verdict, user  # type: ignore[attr-defined]  # for the view
            if verdict is Verdict.ENROLLED:
                request.recovery_codes = second_factors.new_recovery_codes(user)  # type: ignore[attr-defined]  # the same
        return user if verdict.lets_in else None


class Handler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """Counts no right password as a failure because the question for the second factor follows."""

    def user_login_failed(self, sender: Any, credentials: Any, request: Any = None, **more: Any) -> None:
        if getattr(request, "second_factor", None) not in _ASKING:
            super().user_login_failed(sender, credentials, request, **more)
