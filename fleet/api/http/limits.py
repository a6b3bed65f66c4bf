"""How `fleet.limits` counts the requests of the web process, and how it refuses them: as every refusal of REST looks."""

import json

from fleet.limits.callers import Scope
from fleet.limits.limited import Sort

_SIGN_IN = ("/api/v1/session", "/admin/login")


def sort(scope: Scope) -> Sort:
    path = scope["path"].rstrip("/")
    if scope["method"] == "POST" and path in _SIGN_IN:
        return Sort.SIGN_IN
    if path.startswith("/api/v1/jobs/") and path.endswith("/logs"):
        return Sort.STREAM
    return Sort.REQUEST


def refusal(status: int, message: str, after_s: int) -> tuple[bytes, bytes]:
    title = "Too many requests" if status == 429 else "Too large"
    body = {"type": "about:blank", "title": title, "status": status, "detail": message}
    if status == 429:
        body["detail"] = f"{message}: try again in {after_s} s"
    return b"application/problem+json", json.dumps(body).encode()
