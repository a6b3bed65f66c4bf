"""Hostile requests over REST: every answer is a refusal, none is an error of the server, and nothing is written."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from fleet.models import Cluster, Grant, JournalEntry, Token
from jobs.models import Job
from tests.attacks.bodies import JSON, VALUES, YAML
from tests.fleet.api.builders import ALL

pytestmark = pytest.mark.django_db
API = "/api/v1/"
WRITES = [(method, path) for method, path in ALL if method in ("post", "put", "patch")]
MANIFESTS = [
    "post apply/",
    "post apply/preview/",
    "post delete/",
    "post quota/dry-run/",
    "put quota/tree/",
    "post quota/tree/preview/",
]
QUERIES = {
    "page": ["0", "-1", "²", "9" * 30, "x"],
    "page_size": ["-1", "9" * 30, "²"],
    "ordering": ["-", "password", "user__password", "\x00", "name,name," * 50],
    "search": ["\x00", "'", "%" * 500, "\\"],
    "labels": ["a," + " " * 8000 + "(", "a in (", "," * 5000, "\x00"],
    "namespace": ["\x00", "../x", "x" * 5000],
    "state": ["\x00", "x"],
    "since": ["²", "9" * 30, "-1"],
    "at": ["9999-99-99", "²", "1e999"],
    "cluster": ["\x00", "x" * 5000],
    "name": ["\x00"],
    "queue": ["\x00", "x" * 5000],
    "limit": ["9" * 30, "-1", "²"],
}


def rows() -> list[int]:
    return [model.objects.count() for model in (Job, Cluster, Grant, Token, JournalEntry, get_user_model())]


@pytest.fixture
def unchanged(as_admin: Any) -> Iterator[Any]:
    before = rows()
    yield as_admin
    assert rows() == before


def sent(client: Any, method: str, path: str, body: bytes, kind: str) -> Any:
    client.raise_request_exception = False
    return client.generic(method.upper(), API + path, body, content_type=kind)


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_it_refuses_every_body_of_json(unchanged: Any, method: str, path: str) -> None:
    """But for actions that need none, and read none."""
    takes_any = path.endswith(("/enable/", "/disable/", "/reset-second-factor/", "/revoke-tokens/"))
    for name, body in JSON.items():
        answer = sent(unchanged, method, path, body, "application/json")
        assert answer.status_code < 500, (name, answer.content)
        assert answer.status_code >= 400 or takes_any, (name, answer.content[:300])


@pytest.mark.parametrize("door", MANIFESTS)
def test_it_refuses_every_body_of_yaml(unchanged: Any, door: str) -> None:
    method, path = door.split()
    for name, body in YAML.items():
        answer = sent(unchanged, method, path, body, "application/yaml")
        told = answer.json()
        refused = 400 <= answer.status_code < 500 and told["detail"]
        assert refused or (path.endswith("tree/preview/") and told["faults"]), (name, answer.status_code, told)


@pytest.mark.parametrize(
    ("path", "field"), [("whatif/", "add_job"), ("clusters/check/", "kubeconfig"), ("quota/tree/", "yaml")]
)
def test_it_refuses_yaml_that_comes_within_json(unchanged: Any, path: str, field: str) -> None:
    method = "put" if path == "quota/tree/" else "post"
    for name, body in YAML.items():
        text = body.decode("latin-1").replace("\x00", "\\0")
        answer = getattr(unchanged, method)(API + path, {field: text}, format="json")
        told = answer.json()
        refused = 400 <= answer.status_code < 500 or (path == "clusters/check/" and told.get("ok") is False)
        assert refused, (name, answer.status_code, told)


@pytest.mark.parametrize("path", sorted({path for method, path in ALL if method == "get"}))
def test_it_answers_every_query(as_viewer: Any, as_admin: Any, path: str) -> None:
    for client in (as_viewer, as_admin):
        client.raise_request_exception = False
        for name, texts in QUERIES.items():
            for text in texts:
                answer = client.get(API + path, {name: text})
                assert answer.status_code < 500, (name, text[:40])


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_it_answers_values_of_the_wrong_type(as_admin: Any, method: str, path: str) -> None:
    fields = (
        "name",
        "namespace",
        "kubeconfig",
        "yaml",
        "manifest",
        "changes",
        "ids",
        "action",
        "role",
        "user",
        "expires_in_days",
        "generation",
        "to",
        "comment",
        "add_job",
        "lose_cluster",
        "drain_cluster",
        "quota",
        "password",
        "username",
        "queue",
        "cluster",
        "at",
    )
    as_admin.raise_request_exception = False
    for value in VALUES:
        answer = getattr(as_admin, method)(API + path, dict.fromkeys(fields, value), format="json")
        assert answer.status_code < 500, (value, answer.content)
