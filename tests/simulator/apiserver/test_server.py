"""The simulated server under faults, under load and after a sudden death: quiet, quick to stop, and nothing lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleet.kube.resources import CONFIG_MAPS, PODS
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberAway, MemberError, MemberExpired
from simulator.apiserver.server import ApiServer
from tests.contract.target import config_map, pod

MAPS = CONFIG_MAPS.path("default")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    made = ApiServer("north", tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(server: ApiServer) -> Iterator[MemberClient]:
    made = MemberClient(server.access())
    yield made
    made.close()


def test_it_breaks_answers_silently(server: ApiServer, client: MemberClient, capfd, caplog) -> None:
    server.faults.reset_rate = 1.0
    for _ in range(3):
        with pytest.raises(MemberAway):
            client.list(PODS.path())
    server.faults.reset_rate = 0.0
    assert client.list(PODS.path())["items"] == []
    assert not caplog.records and capfd.readouterr().err == ""


def test_it_carries_a_request_out_although_the_answer_breaks(server: ApiServer, client: MemberClient) -> None:
    server.faults.reset_rate = 1.0
    with pytest.raises(MemberAway):
        client.create(MAPS, config_map("a"))
    server.faults.reset_rate = 0.0
    assert client.get(f"{MAPS}/a")


def test_it_is_away_for_everybody_but_its_own(server: ApiServer, client: MemberClient) -> None:
    inner = MemberClient(server.inner_access())
    server.faults.away, server.faults.error_rate = True, 1.0
    with pytest.raises(MemberAway):
        client.list(PODS.path())
    assert inner.create(MAPS, config_map("a"))
    server.faults.away, server.faults.error_rate = False, 0.0
    assert client.get(f"{MAPS}/a")
    inner.close()


def test_it_breaks_open_watches_when_it_goes_away(server: ApiServer, client: MemberClient) -> None:
    events = client.watch(MAPS, resource_version="0", timeout_s=300)
    client.create(MAPS, config_map("a"))
    assert next(events).object["metadata"]["name"] == "a"
    server.faults.away = True
    with pytest.raises(MemberAway):
        next(events)


def test_it_lets_stale_watches_expire(server: ApiServer, client: MemberClient) -> None:
    since = client.list(MAPS)["metadata"]["resourceVersion"]
    server.faults.stale_watch = True
    events = client.watch(MAPS, resource_version=since, timeout_s=120)
    client.create(MAPS, config_map("a"))
    watches = len(server.store.listeners)

    def end_when_it_is_open() -> None:
        until(lambda: len(server.store.listeners) > watches)
        server._loop.call_soon_threadsafe(setattr, server.faults, "stale_watch", False)

    threading.Thread(target=end_when_it_is_open, daemon=True).start()
    with pytest.raises(MemberExpired):
        next(events)


def test_it_stops_at_once_whatever_goes_on(tmp_path: Path, capfd, caplog) -> None:
    server = ApiServer("north", tmp_path)
    server.start()
    client = MemberClient(server.access(), timeout_s=300)
    client.create(MAPS, config_map("a"))
    hears = threading.Thread(target=hear_out, args=(client,))
    waits = threading.Thread(target=call_in_vain, args=(client,))
    hears.start()
    until(lambda: requests_under_way(server) == 1)
    server.faults.slow_s = 300.0
    waits.start()
    until(lambda: requests_under_way(server) == 2)
    server.stop()
    hears.join(60)
    waits.join(60)
    assert not hears.is_alive() and not waits.is_alive()
    assert not caplog.records and capfd.readouterr().err == ""
    client.close()


def requests_under_way(server: ApiServer) -> int:
    assert server._server is not None
    return len(server._server.server_state.tasks)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hear_out(client: MemberClient) -> None:
    try:
        for _ in client.watch(MAPS, resource_version="0", timeout_s=300):
            continue
    except MemberError:
        return


def call_in_vain(client: MemberClient) -> None:
    try:
        client.list(MAPS)
    except MemberError:
        return


def test_it_tells_everything_to_a_watch_that_was_far_behind(server: ApiServer, client: MemberClient) -> None:
    since = client.list(MAPS)["metadata"]["resourceVersion"]
    client.create(MAPS, config_map("a"))
    for number in range(1200):
        client.merge_patch(f"{MAPS}/a", {"data": {"n": str(number)}})
    events = client.watch(MAPS, resource_version=since, timeout_s=1)
    numbers = [(e.object.get("data") or {}).get("n") for e in events if e.type == "MODIFIED"]
    assert numbers == [str(number) for number in range(1200)]


def test_it_tells_where_the_beginning_ends_to_who_watches_instead_of_listing(client: MemberClient) -> None:
    client.create(MAPS, config_map("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    first, second = list(client.watch(MAPS, resource_version="", params=query, timeout_s=1))[:2]
    assert (first.type, first.object["metadata"]["name"], second.type) == ("ADDED", "a", "BOOKMARK")
    assert second.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_it_gives_each_change_a_version_of_its_own(server: ApiServer, client: MemberClient) -> None:
    def fill(begin: str) -> None:
        for number in range(30):
            client.create(PODS.path("default"), pod(f"{begin}-{number}"))

    threads = [threading.Thread(target=fill, args=(begin,)) for begin in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = [p["metadata"]["resourceVersion"] for p in client.list(PODS.path())["items"]]
    assert len(versions) == len(set(versions)) == 120


WRITER = """
import sys, time
from pathlib import Path
from simulator.apiserver.server import ApiServer
server = ApiServer("north", Path(sys.argv[1]))
server.start()
print("ready", flush=True)
time.sleep(60)
"""


def access(home: Path) -> Access:
    """Of a server in another process, by what it keeps in its folder."""
    url = f"https://127.0.0.1:{(home / 'port').read_text()}"
    return Access(url, ca_pem=(home / "pki" / "ca.pem").read_text(), token=(home / "token").read_text())


def test_it_loses_nothing_acknowledged_when_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        client = MemberClient(access(tmp_path))
        made = [client.create(MAPS, config_map(f"m-{number}")) for number in range(50)]
        client.delete(f"{MAPS}/m-49")
        os.kill(process.pid, signal.SIGKILL)
    again = ApiServer("north", tmp_path)
    again.start()
    reader = MemberClient(again.access())
    listed = reader.list(MAPS)
    assert {m["metadata"]["uid"] for m in listed["items"]} == {m["metadata"]["uid"] for m in made[:-1]}
    assert int(listed["metadata"]["resourceVersion"]) > int(made[-1]["metadata"]["resourceVersion"])
    client.close()
    reader.close()
    again.stop()
