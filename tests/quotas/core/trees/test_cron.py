"""Times as cron states them, against a walk over every minute with no code in common."""

from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from quotas.core.trees.cron import Cron, parse_cron

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def moments(text: str, since: str, until: str, zone=UTC) -> list[str]:
    cron = parse_cron(text)
    assert isinstance(cron, Cron)
    return [f"{each:%m-%dT%H:%M}" for each in cron.between(at(since), at(until), zone)]


def test_it_finds_the_times_of_working_days():
    assert moments("0 8 * * 1-5", "2026-03-06T08:00", "2026-03-11") == ["03-06T08:00", "03-09T08:00", "03-10T08:00"]


def test_clocks_that_are_put_forward_or_back_move_a_time_and_never_lose_or_double_it():
    assert moments("30 2 * * *", "2026-03-28", "2026-03-31", BERLIN) == ["03-28T01:30", "03-29T01:30", "03-30T00:30"]
    assert moments("30 2,3 * * *", "2026-03-29", "2026-03-30", BERLIN) == ["03-29T01:30"]
    assert moments("30 2 * * *", "2026-10-24", "2026-10-27", BERLIN) == ["10-24T00:30", "10-25T00:30", "10-26T01:30"]


@pytest.mark.parametrize("text", [
    "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *",
    "*/0 * * * *", "a * * * *", "1, * * * *", "-1 * * * *", None, 5,
])  # fmt: skip
def test_it_refuses_what_is_no_cron(text):
    assert isinstance(parse_cron(text), str)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_what_a_walk_over_every_minute_finds(seed):
    rng = Random(seed)
    minute, hour = rng.sample(range(60), 2), rng.sample(range(24), 2)
    day = rng.choice(["*", "1,15", "28-31", "*/7"])
    weekday = rng.choice(["*", "0", "7", "1-5", "2,4"])
    month = rng.choice(["*", "2", "1-6"])
    cron = parse_cron(f"{minute[0]},{minute[1]} {hour[0]},{hour[1]} {day} {month} {weekday}")
    assert isinstance(cron, Cron)
    begin = datetime(2026, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), tzinfo=UTC)
    end = begin + timedelta(days=rng.randint(1, 20))

    def matches(moment: datetime) -> bool:
        days = {"*": range(1, 32), "1,15": (1, 15), "28-31": range(28, 32), "*/7": (1, 8, 15, 22, 29)}[day]
        week = {"*": range(7), "0": (6,), "7": (6,), "1-5": range(5), "2,4": (1, 3)}[weekday]
        months = {"*": range(1, 13), "2": (2,), "1-6": range(1, 7)}[month]
        of_month, of_week = moment.day in days, moment.weekday() in week
        both = day not in ("*", "*/7") and weekday != "*"
        on_day = of_month or of_week if both else of_month and of_week
        return moment.month in months and moment.minute in minute and moment.hour in hour and on_day

    every = (begin + timedelta(minutes=n) for n in range(int((end - begin).total_seconds() // 60)))
    assert list(cron.between(begin, end, UTC)) == [moment for moment in every if matches(moment)]
