"""Reports of trainings at the supervisor's door: what is written, how often, and what forged ones achieve: nothing."""

import asyncio
import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobs.runtime.notices import HEARD
from jobs.runtime.progress import MOST_BYTES
from supervisor import reports, status_server
from supervisor.core import facts
from supervisor.core.limits import Bucket, Buckets
from tests.supervisor.reporting import PATH, Endpoint, answer, endpoint, reporting_job, request, steps
from tests.supervisor.world import Object, World, _see

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@asynccontextmanager
async def serving(home: Path) -> AsyncIterator[Endpoint]:
    world = World()
    reporting_job(world)
    async with endpoint(home, world) as served:
        yield served


async def until(true, patience_s: float = 60.0) -> None:
    async with asyncio.timeout(patience_s):
        while not true():
            await asyncio.sleep(0.02)


def test_it_writes_the_progress_on_the_copy_at_most_once_in_five_seconds(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            assert await served.post(steps(1)) == (200, {"stop": False})
            assert served.progress().step == 1
            for step in (2, 3, 4):
                assert (await served.post(steps(step)))[0] == 200
            assert (len(served.member.patches), served.progress().step) == (1, 1)
            served.ahead_s = 5
            await until(lambda: served.progress().step == 4)
            assert (len(served.member.patches), served.member.gets) == (2, 1)

    asyncio.run(story())


def test_the_last_step_is_on_the_copy_before_it_is_answered_and_only_once_at_once(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            await served.post(steps(2990))
            await served.post(steps(3000))
            assert served.progress().has_all_steps
            for step in (10, 3000, 10, 3000):
                await served.post(steps(step))
            assert len(served.member.patches) == 2

    asyncio.run(story())


def test_a_last_step_that_could_not_be_written_is_not_answered_as_if_it_were(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            await served.post(steps(2990))
            served.member.is_away = True
            assert (await served.post(steps(3000)))[0] == 503
            served.member.is_away = False
            assert (await served.post(steps(3000)))[0] == 200
            assert served.progress().has_all_steps

    asyncio.run(story())


def test_a_process_after_a_restart_goes_on_from_the_copy_and_keeps_the_interval(tmp_path: Path):
    async def story() -> None:
        world = World()
        reporting_job(world)
        async with endpoint(tmp_path, world) as served:
            await served.post(steps(10, saved_step=8))
        async with endpoint(tmp_path, world) as served:
            await served.post(json.dumps({"trainerStatus": {"progressPercentage": 100}}).encode())
            assert not served.member.patches, "another process wrote it less than five seconds ago"
            served.ahead_s = 5
            await until(lambda: served.progress().percent == 100)
            now = served.progress()
            assert (now.step, now.total, now.saved_step) == (10, 3000, 8)

    asyncio.run(story())


@pytest.mark.parametrize(("scope", "is_asked"), [("Job", True), ("Pods", False)])
def test_the_answer_says_that_the_job_is_asked_to_stop(tmp_path: Path, scope: str, is_asked: bool):
    """Where only some of its pods are, the others go on: those that leave hear it themselves."""

    async def story() -> None:
        async with serving(tmp_path) as served:
            world, pod = served.world, one_pod(served)
            assert await served.post(steps(1)) == (200, {"stop": False})
            give_notice(served, scope)
            assert await served.post(steps(2)) == (200, {"stop": is_asked})
            if is_asked:
                await until(lambda: HEARD in pod["metadata"]["annotations"])
            heard = [name for name, pod in world.pods.items() if HEARD in pod["metadata"]["annotations"]]
            assert heard == (["bert-worker-0"] if is_asked else []), "the pod that was answered so, and no other"

    asyncio.run(story())


def one_pod(served: Endpoint) -> Object:
    """The pod that reports."""
    pod = served.world.pod("bert-worker-0", "n1")
    pod["status"]["podIP"] = "127.0.0.1"
    _see(served.world, served.store)
    return pod


def give_notice(served: Endpoint, scope: str) -> None:
    pod = served.world.pods["bert-worker-0"]
    notice = '{"uid":"%s","id":"n1-1","cause":"reclaim","node":"n1","scope":"%s","at":"2027-01-01T00:00:00Z",'
    notice += '"deadline":"2027-01-01T00:01:00Z","restarts":0}'
    pod["metadata"]["annotations"]["convoy.dev/notice"] = notice % (facts.read(pod).uid, scope)
    _see(served.world, served.store)


def test_the_answer_that_a_job_is_asked_to_stop_waits_for_no_slow_member(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            pod = one_pod(served)
            give_notice(served, "Job")
            served.member.answers_pods = asyncio.Event()
            for step in (1, 2):
                assert await served.post(steps(step)) == (200, {"stop": True})
            assert HEARD not in pod["metadata"]["annotations"]
            served.member.answers_pods.set()
            await until(lambda: HEARD in pod["metadata"]["annotations"])
            del pod["metadata"]["annotations"][HEARD]
            _see(served.world, served.store)
            served.member.answers_pods.clear()
            assert await served.post(steps(3)) == (200, {"stop": True})
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a write that is not answered outlives no server"

    asyncio.run(story())


FORGED = {
    "the token of another job": (403, {"token": "other"}),
    "no token": (403, {"token": ""}),
    "no such job": (403, {"name": "nobodys"}),
    "no job": (404, {"path": "/apis/v1/namespaces/default/secrets/bert/status"}),
    "out of its namespace": (404, {"path": PATH.format("../../../default/pytorchjobs/bert")}),
    "the list of all jobs": (404, {"path": PATH.format(".")}),
    "the namespace": (404, {"path": PATH.format("..")}),
    "no namespace": (404, {"path": PATH.replace("/default/", "/-/").format("bert")}),
    "300 metrics": (422, {"body": steps(1, **{f"m{n}": n for n in range(300)})}),
    "65 KiB": (413, {"body": b" " * (65 * 1024)}),
    "no JSON": (422, {"body": b"\x00" * 100}),
}


def test_without_a_token_nothing_is_asked_of_the_member(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            assert (await served.post(steps(1), token=""))[0] == 403
            assert served.member.gets == 0

    asyncio.run(story())


def test_what_the_member_answers_with_another_kind_is_no_job(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            served.world.jobs["bert"]["kind"] = "PyTorchJobList"
            assert (await served.post(steps(1)))[0] == 403

    asyncio.run(story())


@pytest.mark.parametrize(("status", "about"), FORGED.values(), ids=FORGED)
def test_a_forged_report_has_no_effect(tmp_path: Path, status: int, about: dict):
    async def story() -> None:
        async with serving(tmp_path) as served:
            before = json.dumps(served.world.jobs)
            for _ in range(2):
                answered, document = await served.post(**{"body": steps(1), **about})
                assert (answered, document["kind"], document["code"]) == (status, "Status", status)
            assert served.member.patches == [] and json.dumps(served.world.jobs) == before

    asyncio.run(story())


def test_a_thousand_reports_a_second_are_refused_and_others_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(status_server, "REQUESTS_PER_S", 1.0)  # a busy machine takes a while to send so many

    async def story() -> None:
        async with serving(tmp_path) as served:
            reader, writer = await served.connect()
            writer.write(request(steps(1), token="other") * 500 + request(steps(1)) * 500)
            statuses = Counter([(await answer(reader))[0] for _ in range(1000)])
            assert set(statuses) <= {200, 403, 429} and statuses[429] > 800, statuses
            assert len(served.member.patches) <= 1 and served.member.gets <= 2
            writer.close()
            monkeypatch.setattr(served, "ahead_s", 60.0)
            assert (await served.post(steps(7)))[0] == 200

    asyncio.run(story())


def test_names_of_jobs_that_are_not_there_cost_the_member_a_bounded_number_of_requests(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(status_server, "REQUESTS_BURST", 1e9)
    monkeypatch.setattr(reports, "LOOKUPS_BURST", 20.0)
    monkeypatch.setattr(reports, "LOOKUPS_OF_ADDRESS_BURST", 1e9)
    monkeypatch.setattr(reports, "LOOKUPS_PER_S", 0.0)
    monkeypatch.setattr(reports, "MOST", 8)

    async def story() -> None:
        async with serving(tmp_path) as served:
            assert (await served.post(steps(1)))[0] == 200
            reader, writer = await served.connect()
            writer.write(b"".join(request(steps(1), path=PATH.format(f"j{n}")) for n in range(300)))
            statuses = Counter([(await answer(reader))[0] for _ in range(300)])
            assert statuses == {403: 19, 429: 281} and served.member.gets == 20
            writer.close()

    asyncio.run(story())


RAW = {
    "no HTTP": (b"hello\r\n\r\n", 400),
    "two lengths": (request(b"", **{"content-length": "5"}), 400),
    "no length": (b"POST / HTTP/1.1\r\n\r\n", 411),
    "chunks": (request(b"", **{"Transfer-Encoding": "chunked"}), 411),
    "a length that is none": (request(b"", **{"Content-Length": "-1"}), 411),
    "get": (b"GET " + PATH.format("bert").encode() + b" HTTP/1.1\r\n\r\n", 405),
    "promised": (request(b"", **{"Content-Length": str(MOST_BYTES + 1)}), 413),
    "a head without end": (b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 9000, 0),
    "a line without end": (b"a" * 100_000, 0),
}


@pytest.mark.parametrize(("text", "status"), RAW.values(), ids=RAW)
def test_what_is_no_sound_request_is_refused(tmp_path: Path, text: bytes, status: int):
    async def story() -> None:
        async with serving(tmp_path) as served:
            reader, writer = await served.connect()
            writer.write(text)
            with contextlib.suppress(ConnectionError):
                if status:
                    assert (await answer(reader))[0] == status
                else:
                    assert await reader.read(100) == b""
            writer.close()
            assert (await served.post(steps(1)))[0] == 200

    asyncio.run(story())


def test_clients_that_say_nothing_hold_up_no_other(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
            began = time.monotonic()
            assert (await served.post(steps(1)))[0] == 200
            assert time.monotonic() - began < status_server._HANDSHAKE_S
            for client in silent:
                client.close()

    asyncio.run(story())


def test_a_job_that_was_made_anew_has_its_own_progress(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            await served.post(steps(100))
            reporting_job(served.world, "new")
            served.world.jobs["bert"]["metadata"]["uid"] = "job-2"
            assert (await served.post(steps(1), token="new"))[0] == 403, "it is known a moment longer by its old token"
            served.ahead_s = reports.UNKNOWN_FOR_S
            assert (await served.post(steps(1), token="new"))[0] == 200
            assert (await served.post(steps(101)))[0] == 403
            await until(lambda: served.progress() is not None)
            assert served.progress().step == 1

    asyncio.run(story())


def test_no_connection_outlives_it_and_what_it_has_answered_is_written(tmp_path: Path):
    async def story() -> None:
        async with serving(tmp_path) as served:
            reader, writer = await served.connect()
            for step in (1, 2):
                writer.write(request(steps(step)))
                assert (await answer(reader))[0] == 200
            silent, other = await asyncio.open_connection("127.0.0.1", served.port)
            assert served.progress().step == 1
        assert served.progress().step == 2
        for each in (reader, silent):
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(60):
                    assert await each.read() == b""
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for end in (writer, other):
            end.close()

    asyncio.run(story())


def test_a_bucket_is_full_at_first_and_of_many_the_oldest_is_forgotten():
    bucket = Bucket(2, 3, 3, 0.0)
    assert [bucket.take(at) for at in (0, 0, 0, 0, 0.4, 0.5, 0.5, 100, 100, 100, 100)] == [True] * 3 + [False] * 2 + [
        *(True, False),
        *([True] * 3),
        False,
    ]
    buckets = Buckets(0, 1, 2)
    assert [buckets.take(key, 0.0) for key in "aabca"] == [True, False, True, True, True]
