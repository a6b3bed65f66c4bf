"""Sets the audit context of every plain HTTP request that may change something.

Knows the request and its answer; what is changed meanwhile, the services' announcements say themselves.
"""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from fleet.services.auditing import audit
from fleet.services.authorization import access

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_PLAIN = frozenset({"create", "update", "partial_update"})
"""Actions for which the change itself says what it was."""
_BY_METHOD = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class AuditMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in _SAFE:
            return self._get_response(request)
        by = access.asked_by(lambda: request.user)
        writing = audit.asking(
            lambda: str(request.user.get_username()),
            door=_door(request),
            address=str(request.META.get("REMOTE_ADDR", "")),
            request=f"{request.method} {shown_path(request)}",
        )
        with by, writing as this:
            request.audited = this  # type: ignore[attr-defined]  # read by the middleware
            answer = self._get_response(request)
            if answer.status_code >= 400:
                verb = this.verb or _BY_METHOD.get(str(request.method), "")
                audit.refused(this, answer.status_code, _answer_message(answer), verb=verb, **_object(request))
        return answer

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        """An action of a view is the verb: suspend, cordon, delete."""
        action = (getattr(view, "actions", None) or {}).get(str(request.method).lower(), "")
        if action and action not in _PLAIN and hasattr(request, "audited"):
            request.audited.verb = "delete" if action == "destroy" else action


def read(request: HttpRequest | Request, kind: str, namespace: str, name: str) -> None:
    """A read that the audit has a line of; call before anything is answered."""
    audit.note(
        str(request.user.get_username()),
        door=_door(request),
        address=str(request.META.get("REMOTE_ADDR", "")),
        request=f"{request.method} {request.path}",
        verb="read",
        kind=kind,
        namespace=namespace,
        name=name,
    )


def shown_path(request: HttpRequest) -> str:
    """Without what signs in."""
    return "/signin/" if request.path.startswith("/signin/") else request.path


def _door(request: HttpRequest | Request) -> str:
    if request.path.startswith("/admin/"):
        return "admin"
    return "rest" if "HTTP_AUTHORIZATION" in request.META else "console"


def _answer_message(answer: HttpResponse) -> str:
    try:
        detail = json.loads(answer.content)["detail"]
    except (ValueError, KeyError, TypeError, AttributeError):
        detail = f"answered {answer.status_code}"
    return str(detail)


def _object(request: HttpRequest) -> dict[str, str]:
    """What the URL names."""
    match = request.resolver_match
    if match is None:
        return {}
    kind = str(getattr(getattr(match.func, "cls", None), "kind", "") or "")
    name = next((str(value) for key, value in match.kwargs.items() if key in ("name", "id", "pk", "uid")), "")
    return {"kind": kind, "name": name}
