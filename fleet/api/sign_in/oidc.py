"""Signing in with an account of the company: to its OpenID Connect provider and back.

The browser keeps what its attempt must come back with, encrypted and for ten minutes; that an attempt comes back once is kept
in the database. No request to the provider is made inside a transaction.
"""

import json
from datetime import timedelta
from functools import lru_cache

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth import login
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import escape
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from fleet.api.sign_in.passwords import BACKEND
from fleet.core.security.oidc import Account, OidcSettings
from fleet.db import clock
from fleet.errors import ConvoyError, Forbidden
from fleet.limits.buckets import Buckets
from fleet.models import SpentState
from fleet.models.encrypted import cipher
from fleet.oidc import Attempt, Provider
from fleet.services.auditing import audit, refused_sign_ins
from fleet.services.auditing.refused_sign_ins import Refusal
from fleet.services.authorization import access, oidc_accounts

START, CALLBACK = "/oidc/signin/", "/oidc/callback/"
COOKIE = "convoy_oidc"
LIFE = timedelta(minutes=10)
_REFUSED = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Convoy</title>
<link rel="icon" href="data:,">
<main><h1>Not signed in</h1><p>{message}</p><p><a href="/">Back to sign in</a></p></main></html>
"""


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    following = request.GET.get("next", "/")
    if not (following.startswith("/") and url_has_allowed_host_and_scheme(following, allowed_hosts=None)):
        following = "/"
    try:
        attempt, url = _provider().begin(request.build_absolute_uri(CALLBACK), following)
    except ConvoyError as e:
        return _page(e.message, e.status)
    response = HttpResponseRedirect(url)
    response.set_cookie(
        COOKIE,
        cipher().encrypt(json.dumps(attempt.as_json()).encode()).decode(),
        max_age=LIFE,
        path=CALLBACK,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


@never_cache
@require_GET
def come_back(request: HttpRequest) -> HttpResponse:
    provider, address = _provider(), str(request.META.get("REMOTE_ADDR", ""))
    try:
        if returns(settings.CONVOY_LIMITS.sign_ins_per_minute).take(address):
            raise Forbidden("too many attempts to sign in: try again in a minute")
        attempt = _attempt(request)
        account = provider.account(attempt, request.GET.get("code", ""), clock.now())
    except ConvoyError as e:
        refused_sign_ins.count(address, Refusal.OIDC)
        return _page(e.message, e.status)
    admission = _admit(account, request, address)
    if admission.user is None:
        return _page(admission.refusal, 403)
    login(request, admission.user, backend=BACKEND)
    response = HttpResponseRedirect(attempt.next)
    response.delete_cookie(COOKIE, path=CALLBACK)
    return response


@lru_cache(maxsize=1)
def returns(per_minute: int) -> Buckets:
    """Of one address, as for passwords: each may cost requests to the provider. Counted in this process alone."""
    return Buckets(per_minute / 60, per_minute)


def _attempt(request: HttpRequest) -> Attempt:
    """The attempt that this browser began and that comes back now, for the first time."""
    try:
        text = cipher().decrypt(request.COOKIES.get(COOKIE, "").encode(), ttl=int(LIFE.total_seconds()))
    except InvalidToken as e:
        raise Forbidden("this browser began no sign-in within the last ten minutes: begin again") from e
    attempt, params = Attempt(**json.loads(text)), request.GET
    if params.get("state") != attempt.state:
        raise Forbidden("the answer is not of the sign-in that this browser began last: begin again")
    if params.get("iss", settings.CONVOY_OIDC.issuer) != settings.CONVOY_OIDC.issuer:
        raise Forbidden("the answer is of another provider than the one that was asked: begin again")
    try:
        with transaction.atomic():
            SpentState.objects.create(digest=access.digest(attempt.state), expires_at=clock.now() + LIFE)
    except IntegrityError as e:
        raise Forbidden("this sign-in came back before: begin again") from e
    if error := params.get("error"):
        raise Forbidden(f"{settings.CONVOY_OIDC.name} refused the sign-in: {error[:100]}")
    return attempt


def _admit(account: Account, request: HttpRequest, address: str) -> oidc_accounts.Admission:
    """With a line in the audit for each role that changes, and for a refusal."""
    name = (settings.CONVOY_OIDC.username_prefix + account.username)[:150]
    about = {"door": "console", "address": address, "request": f"GET {CALLBACK}"}
    with audit.asking(lambda: name, **about):
        admission = oidc_accounts.admit(account)
    if admission.user is None:
        audit.note("", **about, verb="sign-in", refused=admission.refusal, kind="User", name=name)
    return admission


@lru_cache(maxsize=4)
def _of(config: OidcSettings, private_ok: bool) -> Provider:
    return Provider(config, private_ok=private_ok)


def _provider() -> Provider:
    if not settings.CONVOY_OIDC.is_on:
        raise Http404
    return _of(settings.CONVOY_OIDC, settings.CONVOY_PRIVATE_MEMBERS)


def _page(message: str, status: int) -> HttpResponse:
    return HttpResponse(_REFUSED.format(message=escape(message)), status=status)
