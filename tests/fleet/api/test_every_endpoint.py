"""Walks every REST path there is: anonymous callers are refused everywhere, and viewers wherever something would change."""

import pytest

from tests.fleet.api.builders import ALL, ARGUMENTS

pytestmark = pytest.mark.django_db
OPEN = {"session/", "login/token/"}
"""Where one signs in."""
ONES_OWN = {
    "session/", "tokens/", "tokens/1/", "login/code/", "login/token/", "second-factor/", "second-factor/code/",
    "views/", "views/1/", "second-factor/passkeys/", "second-factor/passkeys/options/", "second-factor/passkeys/1/remove/",
}  # fmt: skip
"""What everybody may change, because it is their own."""
QUESTIONS = {"whatif/"}
"""What is asked by POST and changes nothing."""


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
