"""Walks every REST path there is: anonymous callers are refused everywhere, and viewers wherever something would change."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

pytestmark = pytest.mark.django_db
OPEN = {"session/"}
"""Where one signs in."""
ONES_OWN = {"session/", "tokens/", "tokens/1/"}
"""What everybody may change, because it is their own."""
QUESTIONS = {"whatif/"}
"""What is asked by POST and changes nothing."""
ARGUMENTS = {"id": str(UUID(int=1)), "name": "north", "node": "n1", "pk": "1", "username": "ada"}


def paths(patterns, before: str = "") -> Iterator[tuple[str, object]]:
    for each in patterns:
        route = str(each.pattern).lstrip("^").rstrip("$").replace("\\Z", "").replace("/?", "/")
        if isinstance(each, URLResolver):
            yield from paths(each.url_patterns, before + route)
        elif isinstance(each, URLPattern):
            yield before + route, each.callback


def filled(route: str) -> str:
    for name, value in ARGUMENTS.items():
        start = route.find(f"(?P<{name}>")
        if start >= 0:
            route = route[:start] + value + route[route.index(")/", start) + 1 :]
    return route


def endpoints() -> list[tuple[str, str]]:
    """(method, path below /api/v1/)."""
    api = next(each for each in get_resolver().url_patterns if str(each.pattern) == "api/v1/")
    found = []
    for route, view in paths(api.url_patterns):
        allowed = getattr(view, "actions", None) or {m: m for m in view.view_class.http_method_names if has(view, m)}
        found += [(method, filled(route)) for method in allowed if method not in ("options", "head")]
    return sorted(found)


def has(view, method: str) -> bool:
    return hasattr(view.view_class, method)


ALL = endpoints()
WRITES = [(method, path) for method, path in ALL if method != "get" and path not in ONES_OWN | QUESTIONS]


def test_it_walks_what_there_is():
    assert ("post", "apply/") in ALL and ("delete", f"jobs/{ARGUMENTS['id']}/") in ALL and len(ALL) > 35
    assert not [path for _, path in ALL if "(" in path or "<" in path]


@pytest.mark.parametrize(("method", "path"), [each for each in ALL if each[1] not in OPEN])
def test_it_refuses_anonymous_callers(as_nobody, method, path):
    answer = getattr(as_nobody, method)(f"/api/v1/{path}")
    assert answer.status_code in (401, 403)
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_it_refuses_every_change_by_a_viewer(as_viewer, method, path):
    answer = getattr(as_viewer, method)(f"/api/v1/{path}")
    assert answer.status_code == 403
    assert "it takes the role" in answer.json()["detail"]
