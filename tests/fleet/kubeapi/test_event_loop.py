"""All requests of a process share one event loop: nothing long runs on it, and what is many takes turns."""

import asyncio
import gc
import threading
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from deploy.config.kube import application
from fleet.changes import journal
from fleet.kube.requests import selectors
from fleet.kube.requests.status import KubeError
from fleet.kube.server import request as http
from fleet.kube.server.selection import Selection
from fleet.kube.server.watching import WatchOptions
from fleet.kubeapi import limits as kube
from fleet.kubeapi import watching
from fleet.kubeapi.feed import Feed, Subscriber
from fleet.kubeapi.objects.kinds import Change
from fleet.kubeapi.watching import JournalChanges, View
from fleet.limits.limited import Limited
from fleet.limits.settings import Limits
from jobs.kubeapi.kinds import kinds
from jobs.models import Dependent, Job
from jobs.services.submission import manifests, submit
from tests.support.asgi_door import CONFIG_MAPS, Reader, token_of
from tests.support.world import pytorch_job

KIND = next(kind for kind in kinds() if kind.name == "ConfigMap")


def row(number: int) -> Dependent:
    name = f"object-{number:04}"
    return Dependent(
        kind="ConfigMap", namespace="default", name=name, created_at=timezone.now(), resource_version=1,
        manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x" * 1000}},
    )  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "Status", "items": []},
        {"kind": "List", "metadata": {"a": "]}"}, "items": [{"text": f"]}},{number}"} for number in range(50)]},
        {"items": [1] * 50, "kind": "List"},
        {"kind": "Table", "rows": [{"cells": [None, 1.5, "\u00e9"]}] * 21},
    ],
)
def test_a_list_encoded_item_by_item_is_the_same_text(document: dict[str, Any]) -> None:
    assert http.encoded_list(document) == http.encoded(document)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", [b"limit=450", b"", b"watch=true"])
def test_long_answers_are_encoded_in_threads_and_sent_in_slices(monkeypatch: pytest.MonkeyPatch, query: bytes) -> None:
    Dependent.objects.bulk_create(row(number) for number in range(450))
    token, threads, encoded = token_of("ada"), set(), http.encoded

    def seen(document: Any) -> bytes:
        text = encoded(document)
        if len(text) > 500:
            threads.add(threading.get_ident())
            assert len(text) < 5000, "one object at a time"
        return text

    monkeypatch.setattr("fleet.kube.server.request.encoded", seen)
    monkeypatch.setattr("fleet.kube.server.lists.encoded", seen)
    monkeypatch.setattr("fleet.kube.server.watching.encoded", seen)

    async def story() -> None:
        async with asyncio.timeout(120):
            reader = Reader(application(), token, CONFIG_MAPS, query)
            while b"object-0449" not in reader.body:
                await asyncio.sleep(0.01)
            await reader.leave()
        assert len(reader.body) > 450_000 and max(map(len, reader.parts)) <= http.SLICE

    asyncio.run(story())
    assert threads and threading.get_ident() not in threads


@pytest.mark.django_db(transaction=True)
def test_a_request_whose_reader_left_keeps_its_seat_while_a_thread_works_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or those who ask and leave would have more threads at work than there are seats, and others would wait for these."""
    begun, ends, token = threading.Event(), threading.Event(), token_of("ada")

    def begin(view: View) -> int:
        begun.set()
        assert ends.wait(120)
        raise KubeError(400, "refused when its reader had left")

    monkeypatch.setattr(View, "begin", begin)

    async def story() -> None:
        unforeseen = list[dict[str, Any]]()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unforeseen.append(context))
        limited = Limited(application(), Limits(), kube.sort, kube.refusal)
        reader = Reader(limited, token, CONFIG_MAPS, b"watch=true")
        assert await asyncio.to_thread(begun.wait, 120)
        leaving = asyncio.ensure_future(reader.leave())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not leaving.done() and limited._seats._free == Limits().seats - 1
        ends.set()
        await leaving
        assert limited._seats._free == Limits().seats
        gc.collect()
        assert not unforeseen, "it fills no log either"

    asyncio.run(story())


def change(version: int) -> Change:
    shown = {"metadata": {"name": f"m{version}", "uid": str(version), "resourceVersion": str(version)}}
    return Change(version, journal.Action.MODIFIED, "default", f"m{version}", str(version), shown)


def test_many_watches_with_many_changes_take_turns_that_others_have_in_between() -> None:
    """All of them in one turn of the loop would be two hundred times a thousand events before another request is read."""
    options = WatchOptions(KIND, None, Selection(), 1)

    async def story() -> None:
        async def in_thread(work: Any, *args: Any) -> Any:
            raise AssertionError("nothing is read")

        feed, turns, turn, sent = Feed(in_thread), dict[int, int](), 0, list[int]()
        watches = [JournalChanges(View(options), feed, 1, http.encoded, in_thread) for _ in range(20)]
        changes = [change(version) for version in range(2, 302)]
        for watch in watches:
            watch._subscriber.give(changes, 301)

        async def follow(watch: JournalChanges) -> None:
            taken, version = list[str](), 0
            while version < 301:
                await watch.wait(60)
                events, version = await watch.take()
                turns[turn] = turns.get(turn, 0) + len(events)
                taken += [event.shown["metadata"]["resourceVersion"] for event in events]
                assert version == int(taken[-1])
            assert taken == [str(version) for version in range(2, 302)]
            sent.append(len(taken))

        following = asyncio.gather(*map(follow, watches))
        while not following.done():
            turn += 1
            await asyncio.sleep(0)
        await following
        assert sent == [300] * 20 and max(turns.values()) <= watching._TURN

    asyncio.run(story())


def test_a_reader_that_is_too_far_behind_is_ended() -> None:
    subscriber = Subscriber(KIND, 0)
    for first in range(1, 20_002, 1000):
        subscriber.give([change(version) for version in range(first, first + 1000)], first + 999)
    assert subscriber.ended and not subscriber.expired


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", [b"watch=true", b""])
def test_what_its_reader_has_not_taken_is_not_made_yet(monkeypatch: pytest.MonkeyPatch, query: bytes) -> None:
    """What a watch begins with was made whole, for each of two hundred watches of one user."""
    count, made, render = 1100, list[str](), type(KIND).render
    Dependent.objects.bulk_create(row(number) for number in range(count))
    token = token_of("ada")
    monkeypatch.setattr(type(KIND), "render", lambda kind, row: made.append(row.name) or render(kind, row))

    async def story() -> None:
        async with asyncio.timeout(120):
            reader = Reader(application(), token, CONFIG_MAPS, query, is_slow=True)
            await reader.stuck.wait()
            assert len(made) <= 500 < count
            reader.goes_on.set()
            while b"object-1099" not in reader.body:
                await asyncio.sleep(0.01)
            await reader.leave()
        assert sorted(made) == [f"object-{number:04}" for number in range(count)]

    asyncio.run(story())


@pytest.mark.django_db(transaction=True)
def test_a_watch_after_a_list_knows_what_it_selects_without_whole_objects() -> None:
    """Two hundred watches of ten thousand jobs read ten thousand manifests each, to know their uids."""
    job = next(kind for kind in kinds() if kind.name == "PyTorchJob")
    submit.apply(manifests.parse(pytorch_job("llama").encode()), by="test", now=timezone.now())
    selected = Selection(fields=selectors.parse_fields("metadata.name!=whisper"))
    view = View(WatchOptions(job, None, selected, journal.head()))
    with CaptureQueriesContext(connection) as queries:
        view.begin()
    assert view.known == {str(Job.objects.get().uid)}
    assert not [query["sql"] for query in queries if "manifest" in query["sql"]]
