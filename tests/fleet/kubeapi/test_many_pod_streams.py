"""A hundred streams into pods at once: no thread for each, one question about rights for all, and one end."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest
from django.db import OperationalError
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.kubeapi import auditing, pod_streams
from fleet.models import AuditEntry, Token
from fleet.services.members import pod_tunnels
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import client_of, served
from tests.support.members import api, eventually, join, members
from tests.support.pod_streams import Ticking, attach, follow

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)
MANY = 100


@pytest.fixture
def pod():
    return Ticking()


@pytest.fixture
def access(transactional_db, members, pod, admin, tmp_path):
    server = members("north", log_source=pod)
    shown = a_pod("a")
    client = api(server)
    client.create(PODS.path("default"), {key: shown[key] for key in ("metadata", "spec")})
    client.merge_patch(PODS.path("default", "a", "status"), {"status": {"phase": "Running"}})
    Member("north", join(server)).pods(shown)
    with served(tmp_path) as kubectl:
        yield client_of(kubectl.as_user("ada").file).access


def threads():
    """Those that are not of the pool that answers every request, which grows to its size and no further."""
    return {each for each in threading.enumerate() if not each.name.startswith("kubeapi")}


async def hear(pod, streams):
    """Each has shown what the pod prints; one that is open shows only what comes after the member has begun to read for it."""
    async with asyncio.timeout(60):
        heard = asyncio.gather(*(stream.until(b"tick\n") for stream in streams))
        while not heard.done():
            pod.tick()
            await asyncio.sleep(0.05)


def test_streams_take_no_threads_share_the_question_for_rights_and_end_together(access, pod, monkeypatch):
    asked, may_go_on = [], pod_tunnels.may_go_on
    monkeypatch.setattr(pod_tunnels, "may_go_on", lambda *args: asked.append(args) or may_go_on(*args))

    async def story():
        streams = [await attach(access, "a") for _ in range(MANY)]
        await hear(pod, streams)
        between = threads()
        begun, known = time.monotonic(), len(asked)
        while len(asked) < known + 2:
            await asyncio.sleep(0.05)
        looks = (time.monotonic() - begun) / pod_streams.RECHECK_S
        await asyncio.to_thread(Token.objects.update, revoked_at=timezone.now())
        await asyncio.wait_for(asyncio.gather(*(stream.until_closed() for stream in streams)), 60)
        return between, looks

    before = threads()
    between, looks = asyncio.run(story())
    assert not between - before  # those of tests before may end meanwhile
    assert looks > 0.9, "the rights of streams of one token are asked once for all of them"
    eventually(lambda: AuditEntry.objects.filter(verb="end").count() == MANY)


def test_followed_logs_take_no_threads_have_places_of_their_own_and_end_with_their_token(access, pod, settings):
    settings.CONVOY_LIMITS = type(settings.CONVOY_LIMITS)(streams=20)

    async def story():
        alone, logs = threads(), [await follow(access, "a") for _ in range(20)]
        await hear(pod, logs)
        with pytest.raises(AssertionError, match="20 for one user"):
            await follow(access, "a")
        between = threads()
        stream = await attach(access, "a")
        await asyncio.to_thread(Token.objects.update, revoked_at=timezone.now())
        await asyncio.wait_for(asyncio.gather(*(log.until_closed() for log in [*logs, stream])), 60)
        return between - alone

    grown = asyncio.run(story())
    assert len([each for each in grown if each.name.startswith("proxy")]) == 0


def test_a_stream_too_many_is_refused_and_a_place_is_free_again_after_an_end(access, settings):
    settings.CONVOY_LIMITS = type(settings.CONVOY_LIMITS)(streams=2)

    async def story():
        streams = [await attach(access, "a") for _ in range(2)]
        with pytest.raises(AssertionError, match="too many streams to pods are open: 2 for one user"):
            await attach(access, "a")
        streams[0].close()
        async with asyncio.timeout(60):
            while True:
                with suppress(AssertionError):
                    return streams[1], await attach(access, "a")
                await asyncio.sleep(0.05)

    asyncio.run(story())


def test_streams_that_are_silent_too_long_are_ended(access, settings):
    settings.CONVOY_MEMBERS = type(settings.CONVOY_MEMBERS)(proxy_stream_idle_s=1)

    async def story():
        stream = await attach(access, "a")
        await asyncio.wait_for(stream.until_closed(), 60)

    asyncio.run(story())
    eventually(lambda: AuditEntry.objects.filter(verb="end", message__contains="idle for 1 s"))


def test_streams_stay_while_the_database_is_away_for_a_moment_and_end_when_it_stays_away(access, monkeypatch):
    failures = []

    def away(*_):
        failures.append(1)
        raise OperationalError("gone")

    monkeypatch.setattr(pod_tunnels, "may_go_on", away)
    monkeypatch.setattr(pod_streams, "RECHECK_S", 0.1)

    async def story():
        stream = await attach(access, "a")
        await asyncio.wait_for(stream.until_closed(), 60)

    asyncio.run(story())
    assert len(failures) == pod_streams.MAX_FAILED_CHECKS


def test_no_stream_stays_open_that_is_not_looked_at_any_more(access, monkeypatch):
    def broken(*_):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(pod_tunnels, "may_go_on", broken)

    async def story():
        streams = [await attach(access, "a") for _ in range(2)]
        await asyncio.wait_for(asyncio.gather(*(stream.until_closed() for stream in streams)), 60)

    asyncio.run(story())


def test_the_connection_to_the_member_is_closed_when_the_begin_cannot_be_written_down(access, pod, monkeypatch):
    monkeypatch.setattr(auditing, "ended", lambda *_: (_ for _ in ()).throw(OperationalError("gone")))

    async def story():
        with pytest.raises(AssertionError, match="the database is busy"):
            await attach(access, "a")

    asyncio.run(story())
    eventually(lambda: pod.reads)  # the member had opened the stream, and comes to read for it sooner or later

    def is_still() -> bool:
        reads = pod.reads
        time.sleep(0.3)
        return pod.reads == reads

    eventually(is_still)
