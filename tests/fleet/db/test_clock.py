"""The time that processes share, where no query may be made."""

import asyncio
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from fleet.db import clock

LONG_AGO_S = 3600


async def now_in_loop() -> datetime:
    return clock.now()


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only PostgreSQL has a clock. A query would fail here, as it does in an event loop."""
    monkeypatch.setattr(clock, "connection", SimpleNamespace(vendor="postgresql"))


def test_it_counts_on_from_the_last_answer_in_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(clock, "_known", (answer, time.monotonic() - LONG_AGO_S))
    passed = asyncio.run(now_in_loop()) - answer
    assert timedelta(seconds=LONG_AGO_S) <= passed < timedelta(seconds=LONG_AGO_S + 120)


def test_it_is_the_machines_time_in_an_event_loop_before_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_known", None)
    assert abs(asyncio.run(now_in_loop()) - timezone.now()) < timedelta(minutes=2)


def test_it_asks_although_the_last_answer_is_fresh_where_a_step_must_be_followed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, stepped = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=UTC)
    cursor = SimpleNamespace(execute=lambda _: None, fetchone=lambda: (stepped,))
    connection = SimpleNamespace(vendor="postgresql", cursor=lambda: nullcontext(cursor))
    monkeypatch.setattr(clock, "connection", connection)
    monkeypatch.setattr(clock, "_known", (before, time.monotonic()))
    assert clock.now() < stepped <= clock.now(ask=True)
    assert clock.now() >= stepped, "the answer is known from then on"
