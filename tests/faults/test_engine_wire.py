"""What the engine's judge says of requests that a member was sent for copies, and that it sees them as they arrive."""

import asyncio
import json

import pytest

from tests.faults.engine import judge
from tests.faults.engine.judge import Struck
from tests.faults.engine.wire import ATTEMPT, JOB, Recorder, Write

GANGS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"


def creation(attempt: int, status: int = 201, member: str = "north") -> Write:
    return Write(member, "POST", "gang", status, 0.0, "u", attempt)


def ask(method: str, path: str, body: object, status: int = 200, *, inner: bool = False) -> list[Write]:
    """What is recorded of one request."""
    writes: list[Write] = []

    async def app(scope: dict, receive, send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": status})
        await send({"type": "http.response.body"})

    async def receive() -> dict:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message: dict) -> None:
        pass

    scope = {"type": "http", "method": method, "path": path}
    asyncio.run(Recorder(app, "north", writes, lambda _: inner)(scope, receive, send))
    return writes


def test_it_records_who_a_copy_was_created_for():
    body = {"metadata": {"name": "gang", "labels": {JOB: "u", ATTEMPT: "2"}}}
    [write] = ask("POST", GANGS, body, 201)
    assert (write.member, write.name, write.uid, write.attempt, write.status) == ("north", "gang", "u", 2, 201)


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
