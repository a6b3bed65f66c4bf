"""Every endpoint of the REST API, by its method and path."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from django.urls import URLPattern, URLResolver, get_resolver

ARGUMENTS = {"id": str(UUID(int=1)), "name": "north", "node": "n1", "pk": "1", "username": "ada"}


def paths(patterns, before: str = "") -> Iterator[tuple[str, object]]:
    for each in patterns:
        route = str(each.pattern).lstrip("^").rstrip("$").replace("\\Z", "").replace("/?", "/")
        if isinstance(each, URLResolver):
            yield from paths(each.url_patterns, before + route)
        elif isinstance(each, URLPattern):
            yield before + route, each.callback


def filled(route: str, arguments: Mapping[str, str] = ARGUMENTS) -> str:
    for name, value in arguments.items():
        start = route.find(f"(?P<{name}>")
        if start >= 0:
            route = route[:start] + value + route[route.index(")/", start) + 1 :]
    return route


def routes() -> list[tuple[str, str]]:
    """(method, route below /api/v1/), with the patterns of its arguments."""
    api = next(each for each in get_resolver().url_patterns if str(each.pattern) == "api/v1/")
    found = []
    for route, view in paths(api.url_patterns):
        allowed = getattr(view, "actions", None) or {m: m for m in view.view_class.http_method_names if has(view, m)}
        found += [(method, route) for method in allowed if method not in ("options", "head")]
    return sorted(found)


def has(view, method: str) -> bool:
    return hasattr(view.view_class, method)


ALL = sorted((method, filled(route)) for method, route in routes())
