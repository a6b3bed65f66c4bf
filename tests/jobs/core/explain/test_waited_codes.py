"""Why a job waited, in the codes of its reasons: each moment of a slice has one, none from before the last attempt."""

from datetime import timedelta

from jobs.core.explain import waited_codes
from jobs.core.explain.timeline import Owner, Run, Slice
from tests.quotas.core.builders import NOON


def at(minutes: int):
    return NOON + timedelta(minutes=minutes)


def entered(*codes: tuple[str, int]) -> list[list[str]]:
    stored, before = [], None
    for code, minutes in codes:
        stored = waited_codes.enter_code(stored, before, {"code": code}, at(minutes))
        before = {"code": code}
    return stored


def split(owner: Owner, begin: int, end: int, stored, *runs: tuple[int, int]) -> list[tuple[str, int]]:
    """Each code with its minutes."""
    ran = [
        Run(i, "north", at(first), None, None, at(last), "Reclaimed") for i, (first, last) in enumerate(runs, start=1)
    ]
    parts = list(waited_codes.split(Slice(owner, at(begin), at(end)), stored, ran))
    assert [part[1] for part in parts] == [at(begin), *(part[2] for part in parts[:-1])] and parts[-1][2] == at(end)
    return [(code, int((until - since).total_seconds()) // 60) for code, since, until in parts]


def test_it_cuts_a_slice_where_the_code_changes_and_keeps_no_code_twice():
    stored = entered(("QuotaExceeded", 1), ("QuotaExceeded", 2), ("BudgetSpent", 5))
    assert len(stored) == 2
    assert split(Owner.QUOTA, 1, 9, stored) == [("QuotaExceeded", 4), ("BudgetSpent", 4)]


def test_until_the_scheduler_has_looked_a_job_waits_for_it():
    assert split(Owner.QUEUE, 0, 3, entered(("BehindInQueue", 2))) == [("WaitingForScheduler", 2), ("BehindInQueue", 1)]


def test_a_code_from_before_an_attempt_says_nothing_of_the_time_after_it():
    stored = waited_codes.enter_code(
        entered(("QuotaExceeded", 0)), {"code": "Reclaimed"}, {"code": "QuotaExceeded"}, at(8)
    )
    assert split(Owner.QUOTA, 6, 9, stored, (2, 6)) == [("Reclaimed", 2), ("QuotaExceeded", 1)]


def test_a_job_from_before_codes_were_kept_has_none():
    assert split(Owner.QUOTA, 0, 9, None) == [("", 9)]


def test_the_latest_hundred_are_kept():
    stored = entered(*((f"Code{i}", i) for i in range(150)))
    assert (len(stored), stored[0][0], stored[-1][0]) == (100, "Code50", "Code149")
