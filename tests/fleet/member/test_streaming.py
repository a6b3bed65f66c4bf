"""Lists and watches of one member over one HTTP/2 connection: what one of them meets costs the others nothing."""

import asyncio
import json
from contextlib import aclosing, contextmanager
from dataclasses import replace

import pytest

from fleet.member.client import Access
from fleet.member.errors import MemberAway, MemberDenied, MemberExpired
from fleet.member.streaming import client as client_module
from fleet.member.streaming import http2
from fleet.member.streaming.client import StreamClient
from tests.support.black_hole import black_hole
from tests.support.http2_server import http2_server

BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}


def line(event) -> bytes:
    return json.dumps(event).encode() + b"\n"


def added(name: str, size: int = 0) -> bytes:
    return line({"type": "ADDED", "object": {"metadata": {"name": name, "resourceVersion": "1"}, "text": "x" * size}})


def watch(client, path="/pods", timeout_s=30, opened=lambda: None):
    return client.watch(path, resource_version="1", params={}, timeout_s=timeout_s, opened=opened)


async def names(events, count):
    found = []
    async with aclosing(events):
        async for event in events:
            found.append(event.object["metadata"]["name"])
            if len(found) == count:
                break
    return found


@contextmanager
def closing(server, **options):
    client = StreamClient(server.access, **{"timeout_s": 5.0, **options})
    try:
        yield client
    finally:
        client.close()


async def until(condition, within_s=60.0):
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)


def test_thirty_watches_and_a_list_share_one_connection(tmp_path):
    def answer(target):
        if "watch=1" in target:
            return 200, added(target.partition("?")[0]), False
        return (
            200,
            json.dumps({"items": [{"metadata": {"name": "a"}}], "metadata": {"resourceVersion": "7"}}).encode(),
            True,
        )

    async def main(server):
        with closing(server) as client:
            watches = [names(watch(client, f"/kind{number}"), 1) for number in range(30)]
            found = await asyncio.gather(*watches)
            async with client.collection("/pods", {}) as pages:
                [page] = [page async for page in pages]
            assert page["metadata"]["resourceVersion"] == "7"
            assert [each for [each] in found] == [f"/kind{number}" for number in range(30)]
            assert len(server.connections) == 1

    with http2_server(tmp_path, answer) as server:
        asyncio.run(main(server))


def test_a_list_is_read_page_by_page_and_may_be_larger_than_every_window(tmp_path):
    def answer(target):
        more = {"continue": "next"} if "continue" not in target else {}
        return 200, json.dumps({"items": [{"x": "x" * 5_000_000}], "metadata": more}).encode(), True

    async def main(server):
        with closing(server) as client:
            async with client.collection("/pods", {}) as pages:
                assert [len(page["items"][0]["x"]) async for page in pages] == [5_000_000] * 2

    with http2_server(tmp_path, answer) as server:
        asyncio.run(main(server))


def test_an_answer_or_an_event_that_does_not_end_is_given_up_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "LONGEST_PAGE", 10_000)
    monkeypatch.setattr(client_module, "LONGEST_EVENT", 10_000)

    def answer(target):
        return 200, added("a") if "/other" in target else b"x" * 30_000, False

    async def main(server):
        with closing(server) as client:
            other = watch(client, "/other")
            await anext(other)
            with pytest.raises(MemberAway, match="longer than 10000 bytes"):
                async with client.collection("/pods", {}) as pages:
                    await anext(pages)
            with pytest.raises(MemberAway, match="longer than 10000 bytes"):
                await anext(watch(client, "/endless"))
            [connection] = server.connections
            server.do(lambda: connection.send(next(t for t in connection.streams if "/other" in t), added("b")))
            assert (await anext(other)).object["metadata"]["name"] == "b"
            await until(lambda: len(connection.reset) == 2)

    with http2_server(tmp_path, answer) as server:
        asyncio.run(main(server))


def test_a_collection_whose_pages_never_end_gives_its_turn_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "LONGEST_LIST_S", 0.5)
    page = json.dumps({"items": [], "metadata": {"continue": "again"}}).encode()

    async def main(server):
        turns = asyncio.Semaphore(1)
        with closing(server, turns=turns) as client:
            with pytest.raises(MemberAway):
                async with client.collection("/pods", {}) as pages:
                    async for _ in pages:
                        pass
            assert not turns.locked()

    with http2_server(tmp_path, lambda target: (200, page, True)) as server:
        asyncio.run(main(server))


def test_a_reader_that_is_slow_holds_up_its_own_watch_alone(tmp_path):
    async def main(server):
        with closing(server) as client:
            slow = watch(client, "/slow")
            assert (await anext(slow)).object["metadata"]["name"] == "s0"
            [connection] = server.connections
            target = next(target for target in connection.streams if target.startswith("/slow"))
            server.do(lambda: connection.send(target, b"".join(added(f"s{n}", 10_000) for n in range(1, 1000))))
            assert await names(watch(client, "/fast"), 1) == ["/fast"]
            assert await names(slow, 999) == [f"s{n}" for n in range(1, 1000)]

    with http2_server(tmp_path, lambda t: (200, added("s0" if "/slow" in t else "/fast"), False)) as server:
        asyncio.run(main(server))


def test_a_watch_that_is_given_up_ends_at_the_server_and_the_others_go_on(tmp_path):
    async def main(server):
        with closing(server) as client:
            other = watch(client, "/other")
            await anext(other)
            assert await names(watch(client, "/gone"), 1) == ["/gone"]
            [connection] = server.connections
            await until(lambda: [each.partition("?")[0] for each in connection.reset] == ["/gone"])
            target = next(target for target in connection.streams if target.startswith("/other"))
            server.do(lambda: connection.send(target, added("late")))
            assert await names(other, 1) == ["late"]

    with http2_server(tmp_path, lambda t: (200, added(t.partition("?")[0]), False)) as server:
        asyncio.run(main(server))


@pytest.mark.parametrize(("status", "error"), [(401, MemberDenied), (410, MemberExpired), (500, MemberAway)])
def test_it_says_what_the_member_refuses_with(tmp_path, status, error):
    body = json.dumps({"kind": "Status", "message": "no"}).encode()

    async def main(server):
        with closing(server) as client:
            with pytest.raises(error) as refusal:
                await anext(watch(client))
            assert (refusal.value.status, refusal.value.message) == (status, "no")

    with http2_server(tmp_path, lambda _: (status, body, True)) as server:
        asyncio.run(main(server))


def test_an_error_in_a_watch_is_raised(tmp_path):
    event = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}

    async def main(server):
        with closing(server) as client, pytest.raises(MemberExpired):
            await anext(watch(client))

    with http2_server(tmp_path, lambda _: (200, line(event), True)) as server:
        asyncio.run(main(server))


def test_a_connection_that_breaks_ends_what_it_carried_and_the_next_request_makes_another(tmp_path):
    async def main(server):
        with closing(server) as client:
            first, second = watch(client, "/first"), watch(client, "/second")
            for each in (first, second):
                await anext(each)
            server.do(server.connections[0].transport.abort)
            for each in (first, second):
                with pytest.raises(MemberAway):
                    await anext(each)
            assert await names(watch(client, "/third"), 1) == ["/third"]
            assert len(server.open) == 1

    with http2_server(tmp_path, lambda t: (200, added(t.partition("?")[0]), False)) as server:
        asyncio.run(main(server))


def test_a_server_that_goes_away_in_order_gets_new_requests_on_another_connection(tmp_path):
    async def main(server):
        with closing(server) as client:
            first = watch(client, "/first")
            await anext(first)
            [connection] = server.connections

            def go_away():
                connection.h2.close_connection()
                connection.flush()

            server.do(go_away)
            await until(lambda: not client._connections._shared.is_open)
            assert await names(watch(client, "/second"), 1) == ["/second"]
            assert len(server.connections) == 2

    with http2_server(tmp_path, lambda t: (200, added(t.partition("?")[0]), False)) as server:
        asyncio.run(main(server))


def test_a_peer_that_is_gone_without_a_word_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(http2, "_PING_S", 0.1)
    monkeypatch.setattr(http2, "_SILENT_S", 0.3)

    async def main(server):
        with closing(server) as client:
            lost = watch(client)
            await anext(lost)
            await until(lambda: server.connections[0].pings >= 8)
            assert len(server.open) == 1, "a peer that answers pings was given up"
            server.connections[0].is_mute = True
            async with asyncio.timeout(60):
                with pytest.raises(MemberAway, match="no answer in time"):
                    await anext(lost)

    with http2_server(tmp_path, lambda _: (200, added("a"), False)) as server:
        asyncio.run(main(server))


def test_an_answer_that_does_not_come_costs_its_own_time_and_no_other_watch(tmp_path):
    async def main(server):
        with closing(server, timeout_s=0.5) as client:
            other = watch(client, "/other")
            await anext(other)
            with pytest.raises(MemberAway, match="no answer in time"):
                async with client.collection("/never", {}) as pages:
                    await anext(pages)
            [connection] = server.connections
            target = next(target for target in connection.streams if target.startswith("/other"))
            server.do(lambda: connection.send(target, added("late")))
            assert await names(other, 1) == ["late"]

    with http2_server(tmp_path, lambda t: (200, b"{" if "/never" in t else added("a"), False)) as server:
        asyncio.run(main(server))


def test_a_member_that_does_not_answer_takes_no_turn_of_those_that_do(tmp_path):
    async def main(server, hole):
        turns = asyncio.Semaphore(1)
        silent = StreamClient(replace(server.access, server=hole), timeout_s=30, turns=turns)

        async def list_silent():
            async with silent.collection("/pods", {}):
                raise AssertionError

        waiting = asyncio.create_task(list_silent())
        await asyncio.sleep(0)
        with closing(server, turns=turns) as client:
            async with client.collection("/pods", {}) as pages:
                assert await anext(pages) == {"items": []}
        waiting.cancel()
        silent.close()

    with black_hole() as hole, http2_server(tmp_path, lambda _: (200, b"{}", True)) as server:
        asyncio.run(main(server, hole))


def test_it_says_nothing_to_an_address_that_is_not_allowed(tmp_path):
    async def main(server):
        with closing(server, private_ok=False) as client, pytest.raises(MemberAway, match="private address"):
            await anext(watch(client))
        assert server.connections == []

    with http2_server(tmp_path, lambda _: (200, b"", True)) as server:
        asyncio.run(main(server))


def test_it_says_nothing_to_a_server_that_it_cannot_verify(tmp_path):
    async def main(server, other):
        client = StreamClient(Access(server.access.server, other.access.ca_pem, "token"))
        with pytest.raises(MemberAway, match="certificate is not trusted"):
            await anext(watch(client))
        assert server.targets == []
        client.close()

    def answer(_):
        return 200, b"", True

    with http2_server(tmp_path / "a", answer) as server, http2_server(tmp_path / "b", answer) as other:
        asyncio.run(main(server, other))


def test_closing_the_client_ends_every_watch(tmp_path):
    async def main(server):
        with closing(server) as client:
            open_watch = watch(client)
            await anext(open_watch)
            client.close()
            with pytest.raises(MemberAway):
                await anext(open_watch)
            await until(lambda: not server.open)

    with http2_server(tmp_path, lambda _: (200, added("a"), False)) as server:
        asyncio.run(main(server))
