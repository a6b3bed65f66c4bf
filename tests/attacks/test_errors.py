"""What nobody foresaw, and a database that is away for a moment: told as each door tells things, and nothing of the inside."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, DataError, InterfaceError, OperationalError, connection
from django.test import Client
from django.utils import timezone

from deploy.config.kube import application
from fleet.kubeapi.app import Application
from fleet.kubeapi.objects.clusters import Clusters
from fleet.services.authorization import access
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
LIST = "/apis/cluster.karmada.io/v1alpha1/clusters"
ONE_THROUGH = f"{LIST}/one/proxy/api/v1/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
SECRET = "host=10.9.8.7 password=hunter2"


class Failing(Clusters):
    """A kind that cannot be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def objects(self, *_: Any) -> Any:
        raise self._error


def ask(door: Application, method: str, path: str, token: str = "") -> tuple[int, dict[bytes, bytes], Any]:
    heard = send_all(door, method, path, token, [{"type": "http.request", "body": b"{}"}])
    return heard[0]["status"], dict(heard[0]["headers"]), json.loads(heard[1]["body"])


def send_all(door: Application, method: str, path: str, token: str, messages: list[dict[str, Any]]) -> list[Any]:
    heard: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        heard.append(message)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    asyncio.run(door({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send))
    return heard


def clock_raising(error: Exception) -> Callable[[], datetime]:
    """Read first of all when a caller's token is looked up."""

    def clock() -> datetime:
        raise error

    return clock


@pytest.mark.parametrize(("method", "path"), [("POST", ACCESS), ("POST", RULES), ("GET", LIST), ("GET", ONE_THROUGH)])
def test_an_unforeseen_error_is_a_status_with_an_id_that_the_log_has(
    method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        code, headers, status = ask(Application([Clusters()], clock_raising(ValueError(SECRET))), method, path)
    assert (code, headers[b"content-type"]) == (500, b"application/json")
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "InternalError", 500)
    assert SECRET not in json.dumps(status)
    ident = status["message"].rpartition(" ")[2]
    assert ident in caplog.text and SECRET in caplog.text


@pytest.mark.parametrize("path", [ACCESS, LIST, ONE_THROUGH])
@pytest.mark.parametrize("error", [OperationalError("deadlock detected"), InterfaceError("connection already closed")])
def test_a_database_away_for_a_moment_is_to_be_tried_again(path: str, error: Exception) -> None:
    method = "POST" if path == ACCESS else "GET"
    code, headers, status = ask(Application([Clusters()], clock_raising(error)), method, path)
    assert (code, status["reason"], headers[b"retry-after"]) == (503, "ServiceUnavailable", b"1")
    assert status["details"] == {"retryAfterSeconds": 1} and str(error) not in json.dumps(status)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(DataError("x"), 400), (RecursionError(), 400), (DatabaseError(SECRET), 500), (KeyError(), 500)],
)
def test_a_kind_that_fails_is_a_status(error: Exception, expected: int) -> None:
    token = access.mint(person("ada", superuser=True), "attack", life=None, now=timezone.now())[1]
    code, _, status = ask(Application([Failing(error)]), "GET", LIST, token)
    assert (code, status["code"], status["kind"]) == (expected, expected, "Status")
    assert SECRET not in json.dumps(status)


@pytest.fixture
def browser() -> Iterator[Client]:
    browser = Client(raise_request_exception=False)
    browser.force_login(User.objects.create_superuser("ada"), "fleet.api.sign_in.passwords.PasswordBackend")
    yield browser


def failing(error: Exception, table: str) -> Any:
    def execute(run: Any, sql: str, *rest: Any) -> Any:
        if f'"{table}"' in sql:
            raise error
        return run(sql, *rest)

    return connection.execute_wrapper(execute)


@pytest.mark.parametrize(
    ("path", "table"),
    [("/api/v1/clusters/", "fleet_cluster"), ("/api/v1/clusters/", "django_session"), ("/admin/", "django_session")],
)
@pytest.mark.parametrize("error", [OperationalError("deadlock detected"), InterfaceError("connection already closed")])
def test_the_web_process_asks_to_try_again_what_the_database_could_not_do_now(
    browser: Client, path: str, table: str, error: Exception
) -> None:
    with failing(error, table):
        answer = browser.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["status"] == 503 and str(error) not in answer.content.decode()


def test_rest_refuses_a_value_the_database_cannot_keep(browser: Client) -> None:
    with failing(DataError("integer out of range"), "fleet_cluster"):
        answer = browser.get("/api/v1/clusters/")
    assert (answer.status_code, answer.json()["status"]) == (400, 400)


def test_rest_says_nothing_of_what_nobody_foresaw(browser: Client) -> None:
    with failing(ValueError(SECRET), "fleet_cluster"):
        answer = browser.get("/api/v1/clusters/")
    assert answer.status_code == 500 and answer.json()["status"] == 500
    assert SECRET not in answer.content.decode()


@pytest.mark.parametrize("begun", [b"", b'{"preconditions": {"uid": "an', b"preconditions:\n"])
def test_the_kubernetes_style_door_acts_on_no_body_that_broke_off(begun: bytes) -> None:
    door, one = application(), f"{MAPS}/settings"
    token = access.mint(person("ada", superuser=True), "attack", life=None, now=timezone.now())[1]
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}).encode()
    assert send_all(door, "POST", MAPS, token, [{"type": "http.request", "body": body}])[0]["status"] == 201
    assert not send_all(door, "DELETE", one, token, [{"type": "http.request", "body": begun, "more_body": True}])
    assert ask(door, "GET", one, token)[0] == 200
