"""What the simulated server does when nothing happens: nothing. And what ends a quiet watch all the same, at once."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fleet.kube.resources import CONFIG_MAPS
from fleet.kube.server.selection import Selection
from fleet.kube.server.watching import Watch, WatchOptions
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberExpired
from simulator.apiserver.faults import Faults
from simulator.apiserver.objects.catalog import Catalog
from simulator.apiserver.objects.rules import now
from simulator.apiserver.objects.store import Store
from simulator.apiserver.server import ApiServer
from simulator.apiserver.watching import Surroundings, begin
from tests.contract.target import config_map
from tests.support.virtual_loop import wakeups

MAPS = CONFIG_MAPS.path("default")
BOOKMARKS_A_MINUTE = 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    server = ApiServer("north", tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: ApiServer) -> Iterator[MemberClient]:
    client = MemberClient(server.access())
    yield client
    client.close()


@pytest.mark.parametrize(("bookmarks", "most"), [(True, BOOKMARKS_A_MINUTE + 1), (False, 1)])
def test_a_watch_with_nothing_to_send_wakes_its_server_for_its_bookmarks_only(
    tmp_path: Path, bookmarks: bool, most: int
) -> None:
    store = Store(tmp_path / "objects.sqlite3")
    kind = Catalog(store).of(CONFIG_MAPS)
    options = WatchOptions(kind, None, Selection(), since=store.version)
    watch = Watch(options, bookmarks, timeout_s=3600.0, include=None, clock=now)
    opening = partial(begin, kind=kind, store=store, surroundings=Surroundings(Faults(), lambda: False))

    async def follow() -> None:
        async for _ in watch.lines(opening):
            pass

    assert wakeups(follow(), 60.0) <= most


def test_it_forgets_a_quiet_watch_as_soon_as_its_client_is_gone(server: ApiServer, client: MemberClient) -> None:
    before = len(server.store.listeners)
    opened = threading.Event()
    reader = threading.Thread(target=_read, args=(client, opened), daemon=True)
    reader.start()
    assert opened.wait(60)
    _until(lambda: len(server.store.listeners) == before + 1)
    client.close()
    _until(lambda: len(server.store.listeners) == before)
    reader.join(60)


def test_it_ends_a_quiet_watch_when_it_goes_away(server: ApiServer, client: MemberClient) -> None:
    opened = threading.Event()
    outcome: list[Exception | None] = []
    reader = threading.Thread(target=lambda: outcome.append(_read(client, opened)), daemon=True)
    reader.start()
    assert opened.wait(60)
    server.faults.away = True
    reader.join(60)
    assert isinstance(outcome[0], MemberAway)


def test_it_expires_a_quiet_watch_that_was_stale(server: ApiServer, client: MemberClient) -> None:
    opened = threading.Event()
    outcome: list[Exception | None] = []
    reader = threading.Thread(target=lambda: outcome.append(_read(client, opened)), daemon=True)
    reader.start()
    assert opened.wait(60)
    server.faults.stale_watch = True
    client.create(MAPS, config_map("unseen"))
    server.faults.stale_watch = False
    reader.join(60)
    assert isinstance(outcome[0], MemberExpired)


def test_it_stops_at_once_although_a_watch_is_open(tmp_path: Path) -> None:
    server = ApiServer("south", tmp_path)
    server.start()
    client, opened = MemberClient(server.access()), threading.Event()
    reader = threading.Thread(target=_read, args=(client, opened), daemon=True)
    reader.start()
    assert opened.wait(60)
    server.stop()
    reader.join(60)
    assert not reader.is_alive()
    client.close()


def _read(client: MemberClient, opened: threading.Event) -> Exception | None:
    """Follows until the watch ends; the error that ended it."""
    version = client.list(MAPS)["metadata"]["resourceVersion"]
    try:
        for _ in client.watch(MAPS, resource_version=version, timeout_s=3600, opened=opened.set):
            pass
    except Exception as error:  # noqa: BLE001 - the kind of end is what is asked
        return error
    return None


def _until(holds: Callable[[], bool], limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
