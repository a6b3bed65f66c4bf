"""Rights that are taken back end what was begun with them: open watches and logs, and tokens that were minted before."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from deploy.config.kube import application
from fleet import consumers
from fleet.api.sign_in.authentication import TokenAuthentication, user_of_now
from fleet.changes import journal
from fleet.core.security.token_scopes import Scope
from fleet.kube.server import open_watches
from fleet.kubeapi import pod_streams, proxy, watching
from fleet.models import Grant, Token
from fleet.services.authorization import access, users
from jobs.api.inspect import logs
from jobs.services.inspect.logs import Log
from quotas.models import QuotaGrant
from tests.attacks.two_teams import OURS, THEIRS, submitted
from tests.fleet.builders import by_token, status_of
from tests.support import books, quotas
from tests.support.people import person

TREE = "/api/v1/quota/tree/"


async def watched(
    token: str, path: str, meanwhile: Any, *, since: int = 0, at_each_piece: Callable[[], None] = lambda: None
) -> list[str]:
    """Names that a watch shows until the server ends it; ``meanwhile`` is called once it has begun."""
    door, shown, began = application(), [], asyncio.Event()
    bodies = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(bodies, None) or await asyncio.Event().wait() or {}

    async def send(message: dict[str, Any]) -> None:
        shown.extend(
            json.loads(line)["object"]["metadata"]["name"] for line in message.get("body", b"").splitlines() if line
        )
        began.set()
        await asyncio.to_thread(_in_thread, at_each_piece)

    query = f"watch=true&resourceVersion={since}"
    headers = [(b"authorization", b"Bearer " + token.encode())]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode()}
    watch = asyncio.create_task(door({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send))
    await began.wait()
    await asyncio.to_thread(_in_thread, meanwhile)
    async with asyncio.timeout(60):
        await watch
    return shown


def _in_thread(work: Any) -> None:
    try:
        work()
    finally:
        connection.close()


@pytest.fixture
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_watches, "LOOK_S", 0.02)


ENDINGS = {
    "the token was revoked": lambda user: access.revoke(user, Token.objects.get(user=user).pk, now=timezone.now()),
    "the token ran out": lambda user: Token.objects.filter(user=user).update(expires_at=timezone.now()),
    "the user was disabled": lambda user: users.disable(user.get_username()),
    "the password changed": lambda user: users.set_password(
        user.get_username(), "another long one", now=timezone.now()
    ),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_watch_ends_when_what_its_reader_signed_in_with_ends(looked_at_often: None, ending: str) -> None:
    person("ada", superuser=True)
    mal = person("mal", (Grant.Role.VIEWER, OURS[0]))
    token = by_token(mal, Scope()).text
    submitted(OURS[0], "mine")
    path = f"/apis/kubeflow.org/v1/namespaces/{OURS[0]}/pytorchjobs"
    assert asyncio.run(watched(token, path, lambda: ENDINGS[ending](mal))) == ["mine"]


@pytest.mark.django_db(transaction=True)
def test_a_watch_that_never_catches_up_ends_with_its_token(
    looked_at_often: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader takes so little at a time that each piece finds a change that came meanwhile."""
    monkeypatch.setattr(watching, "_PIECE", 1)
    mal = person("mal", (Grant.Role.VIEWER, OURS[0]))
    token = by_token(mal, Scope()).text
    since = journal.head()
    submitted(OURS[0], "mine")
    path = f"/apis/kubeflow.org/v1/namespaces/{OURS[0]}/pytorchjobs"

    def change() -> None:
        submitted(OURS[0], f"more-{journal.head()}")

    revoke = partial(ENDINGS["the token was revoked"], mal)
    shown = asyncio.run(watched(token, path, revoke, since=since, at_each_piece=change))
    assert shown[0] == "mine"


def test_looks_are_so_often_that_nothing_goes_on_for_more_than_five_seconds() -> None:
    """A watch reads what the last look said as often as there are looks."""
    assert 2 * open_watches.LOOK_S < 5
    assert max(consumers.LOOK_S, proxy.LOOK_AGAIN_S, pod_streams.RECHECK_S, logs.LOOK_AGAIN_S) < 5


@pytest.mark.django_db(transaction=True)
def test_a_watch_of_all_namespaces_ends_when_one_of_them_may_no_longer_be_read(looked_at_often: None) -> None:
    books.a_cluster("north")
    mal = person("mal", *((Grant.Role.VIEWER, namespace) for namespace in (OURS[0], THEIRS[0])))
    token = by_token(mal, Scope()).text
    submitted(OURS[0], "mine")
    submitted(THEIRS[0], "theirs")

    def narrow() -> None:
        Grant.objects.filter(namespace=THEIRS[0]).delete()

    path = "/apis/kubeflow.org/v1/pytorchjobs"
    assert sorted(asyncio.run(watched(token, path, narrow))) == ["mine", "theirs"]
    Grant.objects.update(namespace="")
    asyncio.run(watched(token, path, lambda: Grant.objects.update(namespace=OURS[0])))


class Silent:
    """The lines of a log that is followed: one, and then nothing until it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()

    def __iter__(self) -> Iterator[bytes]:
        yield b"one"
        self.closed.wait(120)


def test_a_log_that_is_followed_ends_when_its_reader_may_no_longer_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LOOK_AGAIN_S", 0.02)
    silent, answers = Silent(), iter([True, True, False])
    log = Log(None, silent, iter(silent))  # type: ignore[arg-type]  # what a log needs of its pod and client
    assert logs.reading.take("ada", of_one=1, in_all=logs.READERS)

    async def followed() -> list[bytes]:
        body = logs.Body(log, "ada", lambda: next(answers))
        body.begin()
        return [line async for line in body.follow()]

    assert asyncio.run(followed()) == [b"one\n"]
    assert silent.closed.is_set()


@pytest.mark.django_db
def test_credentials_that_ended_name_no_user(client: Client) -> None:
    ada = person("ada", (Grant.Role.VIEWER, OURS[0]))
    row, text = access.mint(ada, "t", life=None, now=timezone.now())
    by_bearer = Request(
        APIRequestFactory().get("/", HTTP_AUTHORIZATION=f"Bearer {text}"), authenticators=[TokenAuthentication()]
    )
    assert by_bearer.user == ada and user_of_now(by_bearer) == ada
    client.force_login(ada, "fleet.api.sign_in.passwords.PasswordBackend")
    in_browser = Request(APIRequestFactory().get("/"))
    in_browser._request.session = client.session
    assert user_of_now(in_browser) == ada
    access.revoke(ada, row.pk, now=timezone.now())
    assert user_of_now(by_bearer) is None
    client.logout()
    assert user_of_now(in_browser) is None


@pytest.mark.django_db(transaction=True)
def test_what_a_token_may_follows_the_roles_of_its_user_at_once() -> None:
    """However it was minted: by an admin for another user, with a scope, or by a token of a fleet admin who is none now."""
    quotas.apply_tree(quotas.leaf("a", **quotas.gpus(1, 2)))
    ada = person("ada", (Grant.Role.FLEET_ADMIN, ""))
    lea = person("lea", (Grant.Role.VIEWER, OURS[0]))
    QuotaGrant.objects.create(user=lea, path="root")
    clients = {
        "whole": by_token(ada, Scope(), life=timedelta(hours=1)),
        "scoped": by_token(ada, Scope(verbs=frozenset({"read", "grant", "mint"})), life=timedelta(hours=1)),
        "lead": by_token(lea, Scope(), life=timedelta(hours=1)),
    }
    text = clients["whole"].post("/api/v1/tokens/", {"name": "more"}, format="json").json()["token"]
    change = {"changes": [{"op": "edit", "path": "root/a", "set": {"max": {quotas.GPU: 1}}}]}
    assert clients["scoped"].get("/api/v1/grants/").status_code == 200
    assert clients["lead"].post(f"{TREE}preview/", change, format="json").json()["saves"]
    secrets = f"/api/v1/namespaces/{OURS[0]}/secrets"
    assert asyncio.run(status_of(application(), text, "GET", secrets)) == 200

    Grant.objects.filter(user=ada).delete()
    QuotaGrant.objects.all().delete()
    for client in clients.values():
        assert client.get("/api/v1/grants/").status_code == 403
        assert client.post("/api/v1/grants/", {"user": "ada", "role": "fleet-admin"}, format="json").status_code == 403
        assert client.post(f"{TREE}preview/", change, format="json").status_code == 403
        assert client.patch(TREE, change, format="json").status_code == 403
        assert client.post("/api/v1/users/lea/tokens/", {"name": "x"}, format="json").status_code == 403
    proxied = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy/api/v1/nodes"
    for path in (secrets, "/apis/kubeflow.org/v1/pytorchjobs", proxied):
        assert asyncio.run(status_of(application(), text, "GET", path)) == 403
    assert access.verify(text, now=timezone.now()).user == ada and Token.objects.filter(user=ada).count() == 3
