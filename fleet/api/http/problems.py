"""Every refusal as RFC 9457 problem details, from any layer. Never a traceback, never an input that could be secret."""

import logging
import sys
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.settings import api_settings

from fleet.errors import ConvoyError
from fleet.models.encrypted import SecretUnreadable

log = logging.getLogger(__name__)

API = "/api/"
TITLES = {
    400: "Malformed input",
    401: "Not signed in",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
}
Faults = list[dict[str, str]]
_CSRF = "CSRF Failed"
"""How REST framework begins."""
_BUSY = (OperationalError, InterfaceError)
"""A deadlock, a lock that is not had in time, a connection that is lost: the same request may succeed a moment later."""


def handle(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """REST framework's exception handler; None lets Django log an unexpected error and call `server_error`."""
    if isinstance(exc, ConvoyError):
        faults = [{"field": fault.field, "detail": fault.detail} for fault in exc.faults]
        return problem(exc.status, exc.message, title=exc.title, errors=faults)
    if isinstance(exc, Http404):
        return problem(404, "there is no such object, or you may not see it")
    if isinstance(exc, PermissionDenied):
        return problem(403, str(exc) or "you may not do this")
    if isinstance(exc, RequestDataTooBig):
        return problem(413, "the body is larger than is taken")
    if isinstance(exc, _BUSY):
        return _busy(exc)
    if isinstance(exc, SecretUnreadable):
        log.error("%s", exc)
        return problem(500, str(exc))
    if isinstance(exc, DataError):
        log.warning("a value the database cannot keep: %s", exc)
        return problem(400, "the request holds a value the database cannot keep")
    if isinstance(exc, exceptions.ValidationError):
        faults = list(_faults(exc.detail, ""))
        return problem(422, "; ".join(_fault_text(fault) for fault in faults), errors=faults)
    if isinstance(exc, exceptions.APIException):
        return _framework(exc, context)
    return None


def problem(status: int, detail: str, *, title: str = "", errors: Faults | None = None) -> JsonResponse:
    body: dict[str, Any] = {"type": "about:blank", "title": title or TITLES.get(status, "Refused"), "status": status}
    body["detail"] = detail
    if errors:
        body["errors"] = errors
    return JsonResponse(body, status=status, content_type="application/problem+json")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    about_cookies = _without_https(request)
    if request.path.startswith(API):
        return problem(403, f"the CSRF check failed: {reason}{about_cookies}")
    if about_cookies:
        return HttpResponse(f"{reason}{about_cookies}", status=403, content_type="text/plain; charset=utf-8")
    from django.views.csrf import csrf_failure as page

    return page(request, reason)


def _without_https(request: HttpRequest | Request) -> str:
    """Why a browser has no cookies here, where that is the setting and not the browser."""
    if not settings.CSRF_COOKIE_SECURE or request.is_secure():
        return ""
    return (
        " This request came by plain HTTP, and cookies go over HTTPS only: come by https://, let the proxy that ends TLS send"
        " X-Forwarded-Proto, or set CONVOY_HTTPS=false in a network you trust."
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path.startswith(API):
        status = 413 if isinstance(exception, RequestDataTooBig) else 400
        return problem(status, "the request cannot be read")
    return defaults.bad_request(request, exception)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path.startswith(API):
        return problem(403, str(exception) or "you may not do this")
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path.startswith(API):
        return problem(404, f"there is nothing at {request.path}: see /api/v1/docs/")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the exception is handled; what a middleware raises comes by here alone."""
    if isinstance(raised := sys.exception(), _BUSY):
        return _busy(raised)
    if request.path.startswith(API):
        return problem(500, "Convoy made a mistake; its log says which")
    return defaults.server_error(request)


def _busy(exc: BaseException) -> HttpResponse:
    log.warning("the database is busy: %s", exc)
    response = problem(503, "the database is busy: try again")
    response["Retry-After"] = "1"
    return response


def _framework(exc: exceptions.APIException, context: dict[str, Any]) -> HttpResponse:
    detail = (
        exc.detail
        if isinstance(exc.detail, str)
        else "; ".join(_fault_text(fault) for fault in _faults(exc.detail, ""))
    )
    about_cookies = _without_https(context["request"]) if detail.startswith(_CSRF) else ""
    response = problem(exc.status_code, f"{detail}{about_cookies}")
    if header := getattr(exc, "auth_header", None):
        response["WWW-Authenticate"] = header
    if wait_s := getattr(exc, "wait", None):
        response["Retry-After"] = str(int(wait_s))
    return response


def _faults(detail: object, path: str) -> Iterator[dict[str, str]]:
    """A nested refusal of a serializer, flat: one line a fault, the field as a path."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            at = path if name == api_settings.NON_FIELD_ERRORS_KEY else f"{path}.{name}" if path else str(name)
            yield from _faults(inner, at)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _faults(inner, path)
    else:
        yield {"field": path, "detail": str(detail)}


def _fault_text(fault: dict[str, str]) -> str:
    return f"{fault['field']}: {fault['detail']}" if fault["field"] else fault["detail"]
