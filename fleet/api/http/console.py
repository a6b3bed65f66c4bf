"""The console's one page for every path of its own; its files come from whitenoise. Knows nothing of what it shows."""

from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

UNBUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Convoy</title>
<h1>The console is not built</h1>
<p>Run <code>python3 manage.py up</code>, which builds it, or <code>npm ci &amp;&amp; npm run build</code> in
<code>frontend/web</code>. Meanwhile there are <a href="/api/v1/docs/">the REST API</a>,
<a href="/admin/">the admin</a> and the command line <code>convoy</code>.</p></html>
"""


@require_safe
@never_cache
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    index = Path(settings.CONSOLE_DIST) / "index.html"
    if not index.is_file():
        return HttpResponse(UNBUILT, status=503)
    return HttpResponse(index.read_bytes())
