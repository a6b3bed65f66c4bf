"""What the engine's judge says of requests that a member was sent for copies, and that it sees them as they arrive."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.faults.engine import cost, judge
from tests.faults.engine.history import History
from tests.faults.engine.judge import Struck
from tests.faults.engine.objects import ATTEMPT, JOB
from tests.faults.engine.wire import AGAIN, SENT_AT, Eager, Line, Recorder, Write

GANGS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"


def creation(attempt: int, status: int = 201, member: str = "north") -> Write:
    return Write(member, "POST", "gang", status, 0.0, "u", attempt)


def ask(
    method: str, path: str, body: object, status: int = 200, *, inner: bool = False, line: Line | None = None
) -> list[Write]:
    """What is recorded of one request."""
    line = line or Line([])

    async def app(scope: dict, receive, send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": status})
        await send({"type": "http.response.body"})

    async def receive() -> dict:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message: dict) -> None:
        pass

    headers = [(b"user-agent", b"worker-1/7"), (SENT_AT.encode(), b"12.5")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    asyncio.run(Recorder(app, "north", line, lambda _: inner)(scope, receive, send))
    return line.writes


def test_it_records_who_a_copy_was_created_for():
    body = {"metadata": {"name": "gang", "labels": {JOB: "u", ATTEMPT: "2"}}}
    [write] = ask("POST", GANGS, body, 201)
    assert (write.member, write.name, write.uid, write.attempt, write.status) == ("north", "gang", "u", 2, 201)
    assert (write.sender, write.at) == ("worker-1/7", 12.5)


@pytest.mark.parametrize(
    ("method", "body", "is_checked"),
    [
        ("DELETE", {"preconditions": {"uid": "a", "resourceVersion": "1"}}, True),
        ("DELETE", {"preconditions": {"uid": "a"}}, False),
        ("DELETE", {}, False),
        ("PATCH", {"metadata": {"uid": "a", "resourceVersion": "1"}, "spec": {}}, True),
        ("PATCH", {"spec": {"suspend": True}}, False),
    ],
)
def test_a_request_that_names_no_version_is_seen(method, body, is_checked):
    writes = ask(method, f"{GANGS}/gang", body)
    assert [write.is_checked for write in writes] == [is_checked]
    assert bool(judge.wrong_writes(writes, Struck())) == (not is_checked)


def test_what_is_no_write_of_a_copy_by_the_product_is_not_recorded():
    assert not ask("GET", GANGS, {}) and not ask("DELETE", "/api/v1/namespaces/default/pods/gang-0", {})
    assert not ask("PATCH", f"{GANGS}/gang/status", {}) and not ask("PATCH", f"{GANGS}/gang", {}, inner=True)


def test_a_copy_of_an_older_attempt_that_comes_late_is_seen_unless_its_member_was_struck():
    writes = [creation(2, member="south"), creation(1)]
    assert "created on north after attempt 2" in judge.wrong_writes(writes, Struck(dispatch=True))[0]
    assert judge.wrong_writes(writes, Struck(frozenset({"north"}), dispatch=True)) == []
    assert judge.wrong_writes([creation(1), creation(2)], Struck()) == []


def test_a_copy_that_is_created_a_second_time_is_seen():
    assert any("a second time" in fault for fault in judge.wrong_writes([creation(1)] * 2, Struck(dispatch=True)))


def test_a_copy_that_two_workers_send_is_seen_where_nothing_struck_can_have_lost_the_answer():
    writes = [creation(1), creation(1, 409)]
    assert "again after it was created" in judge.wrong_writes(writes, Struck())[0]
    assert judge.wrong_writes(writes, Struck(dispatch=True)) == []
    assert judge.wrong_writes([creation(2, 409), creation(2)], Struck()) == []


def told(state: str, at: float, history: History | None = None) -> History:
    history = history or History()
    history.note_works(at, [{"job_uid": "u", "attempt": 1, "state": state}])
    return history


def late(write: Write, history: History, *struck: str) -> list[str]:
    return judge.wrong_writes([write], Struck(frozenset(struck), dispatch=True), history)


def test_a_copy_that_is_sent_although_another_worker_has_sent_it_is_seen_whatever_was_struck():
    applied = told("Applied", 2.0, told("Sending", 1.0))
    post = replace(creation(1), at=2.1, sender="worker-1/7")
    assert late(post, applied) == ["worker-1/7 sent attempt 1 of gang to north after it was recorded as sent"]
    assert late(post, applied, "north") == [], "a member that was struck may have kept the request"
    assert late(replace(post, at=1.9), applied) == [] and late(replace(post, sender=AGAIN), applied) == []


@pytest.mark.parametrize(("after_s", "is_late"), [(0.3, False), (2.0, True)])
def test_a_copy_that_is_sent_while_its_work_is_withdrawn_is_seen_unless_it_was_on_its_way(after_s, is_late):
    withdrawn = told("Withdrawing", 2.0, told("Sending", 1.0))
    assert bool(late(replace(creation(1), at=2.0 + after_s), withdrawn)) == is_late


def test_an_end_that_is_asked_of_a_copy_long_gone_is_seen():
    gone = told("Withdrawing", 1.0)
    gone.note_copy(1.9, "c", ("u", 1))
    gone.note_works(2.0, [])
    end = Write("north", "DELETE", "gang", 404, 4.0, object_uid="c", sender="worker-2/8")
    assert late(end, gone) == ["worker-2/8 asked north to DELETE gang after its work was Gone"]
    assert late(replace(end, at=2.1), gone) == []
    gone.note_copy(3.9, "c", ("u", 1))
    assert late(end, gone) == [], "the copy was seen again, so that it had to be removed again"


def test_a_write_is_read_before_its_caller_can_give_up():
    bodies: list[bytes] = []
    messages = iter([{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}])

    async def app(scope: dict, receive, send) -> None:
        bodies.append((await receive())["body"])
        assert (await receive())["type"] == "http.disconnect"

    async def receive() -> dict:
        return next(messages)

    asyncio.run(Eager(app)({"type": "http", "method": "POST"}, receive, None))
    assert bodies == [b"{}"]


def test_a_creation_of_an_earlier_attempt_arrives_once_more_right_before_that_of_a_later_one():
    line = Line([])
    for number in (1, 2, 2):
        ask("POST", GANGS, {"metadata": {"name": "gang", "labels": {JOB: "u", ATTEMPT: str(number)}}}, 201, line=line)
    assert [(write.attempt, write.sender == AGAIN) for write in line.writes] == [
        (1, False), (1, True), (2, False), (2, False),
    ]  # fmt: skip
    assert judge.wrong_writes(line.writes[:3], Struck()) == []


def test_a_copy_that_is_recorded_as_sent_and_was_never_created_is_seen():
    applied = told("Applied", 2.0)
    assert late(creation(1), applied) == []
    assert late(creation(1, 409), applied) == ["attempt 1 of gang was recorded as sent, and no member has created it"]


def test_the_processor_time_of_a_process_counts_those_it_started():
    before = cost.processor_s([os.getpid()])
    code = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert cost.processor_s([os.getpid()]) - before >= 0.2
