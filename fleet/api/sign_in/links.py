"""The one-time sign-in link: a page without scripts that asks, and signs in.

A link stands for the password alone: a user who has a second factor is asked for it here too, and one who needs it sets it
up. The link is used up by the sign-in, not by an attempt, so a mistyped code costs no new link.
"""

from typing import Any

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.utils.html import format_html, format_html_join
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from fleet.api.sign_in.passwords import BACKEND
from fleet.api.sign_in.second_factor import shown
from fleet.api.sign_in.sign_in_audit import sign_in_failed
from fleet.db import clock
from fleet.errors import InvalidInput
from fleet.services.authorization import access, second_factors
from fleet.services.authorization.second_factors import Enrolment, Proof, Verdict

_LONGEST_CODE = 40
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Convoy</title>
<link rel="icon" href="data:,">
<main><h1>Convoy</h1>{}</main></html>
"""
_FORM = """<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{}">
<p>This link signs you in once.</p>{}<button autofocus>Sign in</button></form>"""
_CODE = """<p><label>Code of your authenticator app, or a recovery code
<input name="code" inputmode="text" autocomplete="one-time-code" maxlength="{}" required autofocus></label></p>"""
_ENROLMENT = """<p>Fleet admins need a second factor here. Set up an authenticator app with this secret:</p>
<p><img src="{}" alt="The secret as a QR code"></p><p><code>{}</code></p>"""
_RECOVERY = """<p>The second factor is set up. Keep these recovery codes; they are shown this once:</p><ul>{}</ul>
<p><a href="/">Go to the console</a></p>"""


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest, text: str) -> HttpResponse:
    """Opening the link asks; the button signs in. So a preview uses nothing up, and no other site signs a browser in by it."""
    if request.method != "POST":
        return _page(request)
    now, code = clock.now(), request.POST.get("code", "")[: _LONGEST_CODE + 1]
    try:
        user = access.find_signin_link_user(text, now=now)
        verdict = second_factors.check(user, Proof(code), now=now)
        if not verdict.lets_in:
            return _refuse(request, user, verdict)
        access.use_signin_link(text, now=now)
    except InvalidInput as e:
        return HttpResponse(e.message, status=410, content_type="text/plain; charset=utf-8")
    login(request, user, backend=BACKEND)
    if verdict is Verdict.ENROLLED:
        codes = format_html_join(
            "", "<li><code>{}</code></li>", ((code,) for code in second_factors.new_recovery_codes(user))
        )
        return HttpResponse(format_html(_PAGE, format_html(_RECOVERY, codes)))
    return HttpResponseRedirect("/")


def _refuse(request: HttpRequest, user: Any, verdict: Verdict) -> HttpResponse:
    """The page once more, with what is missing; as with a password, the audit has it."""
    request.second_factor = verdict  # type: ignore[attr-defined]  # read by the audit
    sign_in_failed({"username": user.get_username()}, request)
    if verdict is Verdict.LOCKED:
        return _page(request, "Too many wrong codes: wait a quarter of an hour.", status=429)
    enrolment = second_factors.begin(user) if verdict is Verdict.ENROLMENT_WANTED else second_factors.pending(user)
    notice = "The code is wrong, or was used: wait for the next one." if verdict is Verdict.WRONG else ""
    return _page(request, notice, has_code=True, enrolment=enrolment, status=401)


def _page(
    request: HttpRequest,
    notice: str = "",
    *,
    has_code: bool = False,
    enrolment: Enrolment | None = None,
    status: int = 200,
) -> HttpResponse:
    parts = [format_html('<p role="alert">{}</p>', notice)] if notice else []
    if enrolment is not None:
        parts.append(format_html(_ENROLMENT, shown(enrolment)["image"], enrolment.secret))
    if has_code:
        parts.append(format_html(_CODE, _LONGEST_CODE))
    form = format_html(_FORM, get_token(request), format_html_join("", "{}", ((part,) for part in parts)))
    return HttpResponse(format_html(_PAGE, form), status=status)
