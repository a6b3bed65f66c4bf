"""Queues that borrow, and the users of one queue, share the fleet over time: by what they used lately, divided by weight."""

import pytest

from tests.jobs.core.builders import GPU
from tests.jobs.core.playing import VirtualFleet
from tests.quotas.core.builders import quota

HOUR = 3600.0
OVER_TIME = {"fair-share": "OverTime"}


def leaf(name: str, high: int, low: int = 0, **attributes: str) -> dict:
    return quota(name, {GPU: low}, {GPU: high}, attributes={**OVER_TIME, **attributes})


def fleet(gpus: int, *leaves: dict) -> VirtualFleet:
    return VirtualFleet.of(gpus, quota("all", {GPU: 0}, {GPU: gpus}, *leaves, attributes=OVER_TIME))


def hours(played: VirtualFleet, name: str) -> float:
    return sum(played.gpu_hours[f"root/all/{name}"].values())


@pytest.mark.parametrize(("weights", "share"), [(("1", "1"), 0.5), (("1", "3"), 0.25)])
@pytest.mark.parametrize("pods", [8, 4, 1])
def test_gangs_share_by_weight_over_twelve_hours(weights, share, pods):
    """Also where each fills the fleet, so that at every decision both queues use nothing."""
    played = fleet(64, leaf("a", 64, weight=weights[0]), leaf("b", 64, weight=weights[1]))
    for job in range(16 * 8 // pods):
        played.submit(job + 1, "all/a", pods, 8, HOUR)
        played.submit(job + 1001, "all/b", pods, 8, HOUR, at=100)
    played.play(12 * HOUR)
    a, b = hours(played, "a"), hours(played, "b")
    assert a + b >= 0.95 * 12 * 64 and abs(a / (a + b) - share) <= 0.05, (a, b)


def test_a_queue_that_used_nothing_for_days_goes_first_when_it_returns():
    played = fleet(64, leaf("a", 64), leaf("b", 64))
    for job in range(1, 200):
        played.submit(job, "all/a", 8, 8, HOUR)
    for job in range(1001, 1006):
        played.submit(job, "all/b", 8, 8, HOUR, at=144 * HOUR + 60)
    played.play(152 * HOUR, tick=1800.0)
    started = [job for at, job in played.starts if at > 144 * HOUR + 60]
    assert started[:5] == [1001, 1002, 1003, 1004, 1005]


def test_what_ran_long_ago_counts_less():
    played = fleet(8, leaf("a", 8), leaf("b", 8))
    for account, days in (("a", 0.0), ("b", 20.0)):
        end = played.time.timestamp() - 30 * 86400 + days * 86400
        played.runs.shares.ended(account, (f"root/all/{account}", ""), 8, end - 4 * HOUR, end)
    played.submit(1, "all/b", 1, 8, HOUR)
    played.submit(2, "all/a", 1, 8, HOUR, at=1)
    played.submit(3, "all/a", 1, 8, HOUR)
    played.play(HOUR)
    assert [job for _, job in played.starts][0] == 3


def test_one_users_jobs_do_not_hold_up_anothers():
    played = fleet(8, leaf("a", 8))
    for job in range(1, 501):
        played.submit(job, "all/a", 1, 1, HOUR / 2, user="ada")
    played.submit(1000, "all/a", 1, 1, HOUR, at=60, user="grace")
    played.play(2 * HOUR)
    assert next(at for at, job in played.starts if job == 1000) <= HOUR / 2 + 5


def test_users_of_a_queue_get_equal_shares_of_it():
    played = fleet(8, leaf("a", 8))
    for job in range(1, 101):
        played.submit(job, "all/a", 1, 2, HOUR, user="ada")
        played.submit(job + 1000, "all/a", 1, 4, HOUR, at=10, user="grace")
    played.play(12 * HOUR)
    used = {"ada": 0, "grace": 0}
    for _, job in played.starts:
        used[played.gangs[job].user] += played.gangs[job].devices
    assert abs(used["ada"] / sum(used.values()) - 0.5) <= 0.05, used


def test_priority_comes_before_the_turns_of_users():
    played = fleet(8, leaf("a", 8))
    played.submit(1, "all/a", 1, 8, HOUR, user="ada")
    played.submit(2, "all/a", 1, 8, HOUR, at=60, user="ada", priority=5)
    played.submit(3, "all/a", 1, 8, HOUR, at=60, user="grace")
    played.play(3 * HOUR)
    assert [job for _, job in played.starts] == [1, 2, 3]


def test_a_queue_within_its_min_goes_before_one_that_used_less():
    played = fleet_with_min()
    played.submit(1, "a", 1, 8, HOUR)
    played.submit(2, "b", 1, 8, HOUR, at=60)
    played.submit(3, "a", 1, 8, HOUR, at=61)
    played.play(2 * HOUR)
    assert [job for _, job in played.starts] == [1, 3]


def fleet_with_min() -> VirtualFleet:
    return VirtualFleet.of(8, leaf("a", 8, 8), leaf("b", 8))


def test_a_tree_without_it_shares_by_present_use_alone():
    played = VirtualFleet.of(16, quota("a", {GPU: 0}, {GPU: 16}), quota("b", {GPU: 0}, {GPU: 16}))
    played.runs.shares.ended("old", ("root/a", ""), 8, played.time.timestamp() - HOUR, played.time.timestamp())
    played.submit(1, "a", 1, 8, HOUR)
    played.submit(2, "b", 1, 8, HOUR, at=1)
    played.submit(3, "b", 1, 8, HOUR, at=1)
    played.play(60)
    assert [job for _, job in played.starts] == [1, 2]
