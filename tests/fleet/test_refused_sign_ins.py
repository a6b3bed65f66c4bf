"""Refused sign-ins in the audit: one line for each address and minute, however many attempts there are."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection
from rest_framework.test import APIClient

from fleet.api.http import limits as rest
from fleet.api.sign_in import signing_in
from fleet.limits.buckets import Buckets
from fleet.limits.limited import Limited
from fleet.limits.settings import Limits
from fleet.models import AuditEntry
from fleet.services.auditing import audit_chain, refusal_counts
from fleet.services.auditing.refusal_counts import OTHERS, RefusalCounts
from fleet.services.auditing.refused_sign_ins import Refusal
from tests.support.people import person

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)
OVER = NOW + timedelta(minutes=1)
PASSWORDS = Refusal.PASSWORDS


def lines() -> list[tuple[str, str, int, bool]]:
    rows = AuditEntry.objects.order_by("pk")
    return [(row.address, row.verb, int(row.message.split()[0]), row.complete) for row in rows]


def test_it_writes_one_line_for_each_address_and_minute_with_their_number():
    refused = RefusalCounts()
    for number in range(500):
        refused.count(PASSWORDS.of("10.0.0.1"), NOW + timedelta(seconds=number / 20))
        if number % 100 == 0:
            refused.write(NOW)
    refused.count(PASSWORDS.of("10.0.0.2"), NOW)
    refused.write(NOW)
    assert lines() == [("10.0.0.1", "sign-in", 500, False), ("10.0.0.2", "sign-in", 1, False)]
    refused.write(OVER)
    assert lines() == [("10.0.0.1", "sign-in", 500, True), ("10.0.0.2", "sign-in", 1, True)] and not refused.is_open
    refused.count(PASSWORDS.of("10.0.0.1"), OVER)
    refused.write(OVER, last=True)
    assert lines()[2:] == [("10.0.0.1", "sign-in", 1, True)]


def test_its_lines_are_in_the_chain_once_their_minute_is_over():
    refused = RefusalCounts()
    refused.count(PASSWORDS.of("10.0.0.1"), NOW)
    refused.write(NOW)
    assert audit_chain.link_new(NOW + timedelta(seconds=30)) == 0
    refused.write(OVER)
    assert audit_chain.link_new(OVER + timedelta(seconds=5)) == 1 and not audit_chain.verify().fault


def test_its_memory_is_bounded_also_while_the_database_is_away():
    refused, minutes, number = RefusalCounts(sorts=3), 20, 50
    for minute in range(minutes):
        for address in range(number):
            refused.count(PASSWORDS.of(f"10.0.{minute}.{address}"), NOW + timedelta(minutes=minute))
    refused.write(NOW + timedelta(minutes=minutes))
    written = lines()
    assert len(written) <= 2 * 3 + minutes and sum(line[2] for line in written) == minutes * number
    assert {line[0] for line in written[-5:]} == {OTHERS}


def test_addresses_beyond_the_bound_share_a_line():
    refused = RefusalCounts(sorts=3)
    for number in range(50):
        refused.count(PASSWORDS.of(f"10.0.0.{number}"), NOW)
    refused.write(OVER)
    assert [line[:3] for line in lines()] == [
        *((f"10.0.0.{number}", "sign-in", 1) for number in range(3)), (OTHERS, "sign-in", 47),
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_what_could_not_be_written_is_written_when_the_database_answers_again():
    refused = RefusalCounts()
    refused.count(PASSWORDS.of("10.0.0.1"), NOW)

    def away(*_: object) -> None:
        raise OperationalError("away")

    with connection.execute_wrapper(away), pytest.raises(OperationalError):
        refused.write(OVER)
    refused.write(OVER)
    assert lines() == [("10.0.0.1", "sign-in", 1, True)] and not refused.is_open


@pytest.fixture
def counted(monkeypatch):
    mine = RefusalCounts()
    monkeypatch.setattr(refusal_counts._of_this_process, "refused", mine)

    def write() -> list[tuple[str, str, int, bool]]:
        AuditEntry.objects.all().delete()
        mine.write(datetime.now(UTC), last=True)
        return lines()

    return write


def test_attempts_beyond_the_limit_of_a_user_are_counted(counted, monkeypatch):
    monkeypatch.setattr(signing_in, "ATTEMPTS", Buckets(0.5, 2, lambda: 0.0))
    person("vera")
    client = APIClient()
    for _ in range(9):
        client.post("/api/v1/session/", {"username": "vera", "password": "wrong"}, format="json")
    assert counted() == [("127.0.0.1", "sign-in", 7, True)]


def test_requests_with_refused_tokens_are_counted(counted):
    for _ in range(3):
        APIClient().get("/api/v1/me/", headers={"Authorization": "Bearer cvy_unknown"})
    APIClient().get("/api/v1/me/")
    assert counted() == [("127.0.0.1", "use", 3, True)]


def test_attempts_beyond_the_limit_of_an_address_are_counted_in_front_of_the_door():
    refused: list[str] = []

    async def inner(scope: dict, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": []})  # type: ignore[operator]

    async def receive() -> dict:
        return {"type": "http.request"}

    async def send(message: dict) -> None:
        return None

    async def run() -> None:
        limited = Limited(inner, Limits(sign_ins_per_minute=2), rest.sort, rest.refusal, refused.append)
        scope = {"type": "http", "method": "POST", "path": "/api/v1/session/", "headers": [], "client": ("10.0.0.9", 1)}
        for _ in range(5):
            await limited(scope, receive, send)

    asyncio.run(run())
    assert refused == ["10.0.0.9"] * 3
