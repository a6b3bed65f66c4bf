"""The content security policy of the pages that we did not write: the admin and the API's own documentation.

They run inline scripts, and the admin evaluates expressions in its markup, so those are allowed there and nowhere else;
everything must come from this host even so, and no other page may frame them.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

INLINE_SCRIPTS = ["/admin/", "/api/v1/docs/"]
POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "base-uri 'self'",
    ]
)


class InlineScriptsMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self._get_response(request)
        if request.path.startswith(tuple(INLINE_SCRIPTS)):
            answer.headers["Content-Security-Policy"] = POLICY
        return answer
