"""The websocket of changes, over a real server: who may listen, to what, and how it goes on after a break."""

import json
from collections.abc import Iterator
from threading import Event

import pytest
from channels.db import database_sync_to_async
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test import Client
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from fleet import consumers
from fleet.api.http import origins
from fleet.changes import events, journal
from fleet.core.security.token_scopes import Scope
from fleet.limits.settings import Limits
from fleet.models import Token
from fleet.services.authorization import access
from tests.support.between import after_each_look_at, elsewhere
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served() as number:
        yield number


def token_of(user) -> str:
    return access.mint(user, "test", life=None, now=timezone.now())[1]


def listen(port: int, user=None, query: str = "", **how):
    """Open, and past its first heartbeat, so that it hears whatever comes next."""
    if user is not None:
        how["additional_headers"] = {"Authorization": f"Bearer {token_of(user)}"}
    how.setdefault("origin", f"http://127.0.0.1:{port}")
    line = connect(f"ws://127.0.0.1:{port}/ws/changes/{query}", **how)
    if not query:
        assert heard(line)["type"] == "ping"
    return line


def heard(line) -> dict:
    return json.loads(line.recv(timeout=60))


def change(name: str, namespace: str = "vision", kind: str = "Job") -> int:
    told = journal.Change(kind, namespace, name, "uid", journal.Action.MODIFIED)
    with transaction.atomic():
        return events.announce([told], timezone.now())[0]


def test_it_tells_what_changed(port, admin):
    with listen(port, admin) as line:
        version = change("llama")
        assert heard(line) == {
            "kind": "Job", "namespace": "vision", "name": "llama", "id": "uid", "action": "modified", "version": version,
        }  # fmt: skip


def test_it_tells_only_of_visible_namespaces(port, editor):
    with listen(port, editor) as line:
        change("whisper", "speech")
        change("llama", "vision")
        change("north", "")
        assert [heard(line)["name"] for _ in range(2)] == ["llama", "north"]


def test_it_tells_everybody_of_the_quota_tree_and_its_queues(port, editor):
    with listen(port, editor) as line:
        change("whisper", "speech")
        change("elasticquotatree", "kube-system", "ElasticQuotaTree")
        change("root-vision", "kube-queue", "Queue")
        assert [heard(line)["name"] for _ in range(2)] == ["elasticquotatree", "root-vision"]


def test_it_knows_a_session(port, editor):
    browser = Client()
    browser.force_login(editor)
    cookie = f"sessionid={browser.cookies['sessionid'].value}"
    with listen(port, additional_headers={"Cookie": cookie}) as line:
        change("llama")
        assert heard(line)["name"] == "llama"


def test_it_takes_a_token_as_a_subprotocol_and_not_in_the_address(port, editor):
    text = token_of(editor)
    with listen(port, subprotocols=[f"convoy.bearer.{text}", "convoy.v1"]) as line:
        assert line.subprotocol == "convoy.v1"
    assert code_of(port, query=f"?token={text}") == 4401


@pytest.mark.parametrize("scope", [Scope(verbs=frozenset({"apply"})), Scope(kinds=frozenset({"Job"}))], ids=str)
def test_it_is_not_for_tokens_that_do_not_read_every_kind(port, admin, scope):
    _, text = access.mint(admin, "ci", life=None, now=timezone.now(), scope=scope)
    how = {"additional_headers": {"Authorization": f"Bearer {text}"}}
    with listen(port, query="?x", **how) as line, pytest.raises(ConnectionClosed) as closed:
        line.recv(timeout=60)
    assert closed.value.rcvd.code == 4401


def code_of(port: int, user=None, query: str = "?x") -> int:
    with listen(port, user, query) as line, pytest.raises(ConnectionClosed) as closed:
        line.recv(timeout=60)
    return closed.value.rcvd.code


def test_it_refuses_strangers(port, db):
    assert code_of(port) == 4401


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "https://elsewhere.example",
        "http://127.0.0.1",
        "http://127.0.0.1:{other}",
        "https://127.0.0.1:{port}",
    ],
)
def test_it_refuses_pages_of_other_sites_and_of_other_ports_of_its_host(port, admin, settings, origin):
    """Browsers send the session's cookie to every port of a host: another port may be one of a pod, forwarded."""
    settings.ALLOWED_HOSTS = ["*"]
    with pytest.raises(InvalidStatus):
        listen(port, admin, origin=origin and origin.format(port=port, other=port + 1))


def test_it_takes_pages_of_trusted_origins(port, admin, monkeypatch):
    monkeypatch.setitem(vars(origins._csrf), "allowed_origins_exact", {"https://convoy.example"})
    with listen(port, admin, origin="https://convoy.example"):
        pass


def test_it_sends_what_was_missed(port, admin):
    first = change("a")
    change("b")
    change("c")
    with listen(port, admin, f"?since={first}") as line:
        assert [heard(line)["name"] for _ in range(2)] == ["b", "c"]


def test_it_says_reset_when_too_much_was_missed(port, admin):
    for version in (change("a") + 10**6, -1):
        with listen(port, admin, f"?since={version}") as line:
            # Changes of a moment ago may come first, where a socket that is closing still has its follower.
            while "type" not in (received := heard(line)):
                pass
            assert received["type"] == ("reset" if version > 0 else "ping")


def test_it_hangs_up_when_the_token_is_revoked(port, admin, monkeypatch):
    """Between two heartbeats, which are far apart."""
    monkeypatch.setattr(consumers, "LOOK_S", 0.1)
    with listen(port, admin) as line:
        Token.objects.update(revoked_at=timezone.now())
        with pytest.raises(ConnectionClosed) as closed:
            while heard(line)["type"] == "ping":
                pass
    assert closed.value.rcvd.code == 4403


class Away:
    """A function of the product that fails so many times, after so many good calls."""

    def __init__(self, inner, error: Exception, *, after: int, times: int) -> None:
        self._inner, self._error, self._after, self.left = inner, error, after, times

    def __call__(self, *args):
        self._after -= 1
        if self._after < 0 < self.left:
            self.left -= 1
            raise self._error
        return self._inner(*args)


@pytest.mark.parametrize("times", [1, 2])
def test_it_hangs_up_on_a_revoked_token_after_the_database_was_away(port, admin, monkeypatch, times):
    monkeypatch.setattr(consumers, "PING_S", 0.1)
    away = Away(journal.head, OperationalError("the server closed the connection"), after=3, times=times)
    monkeypatch.setattr(consumers.journal, "head", away)
    with listen(port, admin) as line:
        while away.left:
            assert heard(line)["type"] == "ping"
        Token.objects.update(revoked_at=timezone.now())
        with pytest.raises(ConnectionClosed) as closed:
            while heard(line)["type"] == "ping":
                pass
    assert closed.value.rcvd.code == 4403


def test_changes_do_not_wait_for_looks_at_rights(port, admin, monkeypatch):
    monkeypatch.setattr(consumers, "LOOK_S", 0.1)
    looking, goes_on, look = Event(), Event(), consumers._user

    def slow(scope):
        looking.set()
        assert goes_on.wait(60)
        return look(scope)

    with listen(port, admin) as line:
        monkeypatch.setattr(consumers, "_user", slow)
        assert looking.wait(60)
        change("llama")
        while (received := heard(line)).get("type") == "ping":
            pass
        goes_on.set()
    assert received["name"] == "llama"


@pytest.mark.parametrize("error", [OperationalError("away"), ValueError("unforeseen")])
def test_no_socket_stays_open_whose_rights_cannot_be_looked_at(port, admin, monkeypatch, error):
    monkeypatch.setattr(consumers, "PING_S", 0.1)
    monkeypatch.setattr(consumers.journal, "head", Away(journal.head, error, after=3, times=10**6))
    with listen(port, admin) as line, pytest.raises(ConnectionClosed) as closed:
        while heard(line)["type"] == "ping":
            pass
    assert closed.value.rcvd.code == 1013


def test_a_socket_that_failed_after_it_had_joined_is_followed_no_more(port, admin, monkeypatch):
    left = []

    class Kept(consumers.Follower):
        async def add(self, socket):
            pass

        async def remove(self, socket):
            left.append(socket)

    async def broken(self):
        raise ValueError("unforeseen")

    monkeypatch.setattr(consumers.ChangesConsumer, "_follow", lambda _: Kept())
    monkeypatch.setattr(consumers.ChangesConsumer, "_resume", broken)
    with pytest.raises(ConnectionClosed), listen(port, admin) as line:
        line.recv(timeout=60)
    assert len(left) == 1


def test_sockets_that_did_not_come_about_are_not_counted(port, admin, monkeypatch):
    class Broken(consumers.Follower):
        async def add(self, socket):
            raise ConnectionError("the broker is away")

    with monkeypatch.context() as patched:
        patched.setattr(consumers.ChangesConsumer, "_follow", lambda _: Broken())
        for _ in range(Limits().sockets + 1):
            with pytest.raises(ConnectionClosed) as closed, listen(port, admin) as line:
                line.recv(timeout=60)
            assert closed.value.rcvd is None or closed.value.rcvd.code != 4429
    listen(port, admin).close()


def test_it_counts_the_sockets_of_one_user(port, admin):
    lines = [listen(port, admin) for _ in range(Limits().sockets)]
    assert code_of(port, admin) == 4429
    for line in lines:
        line.close()


def test_it_hangs_up_on_long_speeches(port, admin):
    with listen(port, admin) as line:
        line.send("x" * 5000)
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=60)
    assert closed.value.rcvd.code == 1009


class Slow(consumers.Follower):
    """Something changes as soon as a socket has joined, and is not sent yet."""

    async def add(self, socket: consumers.ChangesConsumer) -> None:
        self.version = await database_sync_to_async(change)("llama")

    async def remove(self, socket: consumers.ChangesConsumer) -> None:
        """Nothing was kept."""


def test_it_does_not_call_settled_what_it_has_not_sent(port, admin, monkeypatch):
    slow = Slow()
    change("old")
    monkeypatch.setattr(consumers.ChangesConsumer, "_follow", lambda _: slow)
    with connect(
        f"ws://127.0.0.1:{port}/ws/changes/",
        origin=f"http://127.0.0.1:{port}",
        additional_headers={"Authorization": f"Bearer {token_of(admin)}"},
    ) as line:
        while (received := heard(line)).get("type") != "ping":
            pass
        assert 0 < received["version"] < slow.version


@pytest.mark.parametrize("query", ["", "?since={}"])
def test_it_sends_what_changes_while_it_joins(port, admin, monkeypatch, query):
    slow = Slow()
    query = query.format(change("old"))
    monkeypatch.setattr(consumers.ChangesConsumer, "_follow", lambda _: slow)
    with connect(
        f"ws://127.0.0.1:{port}/ws/changes/{query}",
        origin=f"http://127.0.0.1:{port}",
        additional_headers={"Authorization": f"Bearer {token_of(admin)}"},
    ) as line:
        assert heard(line)["version"] == slow.version


@pytest.mark.parametrize("error", [InterfaceError("the connection is closed"), ValueError("unforeseen")])
def test_it_hears_on_after_the_journal_could_not_be_read(port, admin, monkeypatch, error):
    monkeypatch.setattr(consumers.ChangesConsumer, "_follow", lambda _: consumers._tailer())
    away = Away(journal.after, error, after=0, times=1)
    monkeypatch.setattr(consumers.journal, "after", away)
    monkeypatch.setattr(consumers, "_missed", lambda since: [])
    with listen(port, admin) as line:
        change("llama")
        assert heard(line)["name"] == "llama" and away.left == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite one transaction writes at a time")
def test_it_misses_nothing_that_was_sent_before_it_joined_and_is_newer_than_what_is_written_still(db):
    since, version = change("a"), []
    with transaction.atomic():
        events.announce([journal.Change("Job", "vision", "slow", "uid", journal.Action.MODIFIED)], timezone.now())
        elsewhere(lambda: version.append(change("b")))

        def read() -> None:
            version.append(consumers._missed(since))

        elsewhere(read)
    newest, missed = version
    assert [(each["name"], each["version"]) for each in missed] == [("b", newest)]


def test_it_misses_nothing_of_a_journal_that_is_compacted_while_it_resumes(db):
    since = change("a")
    for name in ("b", "c", "d"):
        change(name)
    with after_each_look_at("fleet_journalentry", lambda: journal.compact(1)):
        missed = consumers._missed(since)
    assert missed is None or [each["name"] for each in missed] == ["b", "c", "d"]
