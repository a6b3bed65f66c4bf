"""Reclaim between queues that borrow through the whole scheduler, in virtual time: it levels, and comes to rest."""

from collections import Counter

import pytest

from tests.jobs.core.builders import GPU
from tests.jobs.core.playing import VirtualFleet, random_fleet
from tests.quotas.core.builders import quota
from tests.support.examples import IS_FULL

HOUR = 3600.0
SEEDS = range(200) if IS_FULL else (1, 15)


def leaves(names: str, gpus: int, **attributes: str) -> list[dict]:
    fields = {key.replace("_", "-"): value for key, value in attributes.items()}
    return [quota(name, {GPU: 0}, {GPU: gpus}, attributes=fields) for name in names]


def run_by(played: VirtualFleet) -> Counter:
    return Counter(runner.charge.leaf.removeprefix("root/") for runner in played.running.values())


def test_three_queues_level_to_11_11_and_10_and_no_job_is_stopped_twice():
    played = VirtualFleet.of(32, *leaves("abc", 32), reclaim="FairShare")
    for number, name in enumerate("abc"):
        for i in range(16 if number < 2 else 32):
            played.submit(100 * (number + 1) + i, name, 1, 1, 100 * HOUR, at=300.0 * number)
    played.play(500)
    assert run_by(played) == {"a": 16, "b": 16}
    played.play(2 * HOUR)
    assert run_by(played) == {"a": 11, "b": 11, "c": 10}
    assert max(Counter(kill.job for kill in played.kills).values()) == 1 and len(played.kills) == 10


def test_two_queues_that_claim_at_once_take_turns_by_their_shares():
    """Else the first would take all that a has too much, and more would be stopped for the other one."""
    played = VirtualFleet.of(24, *leaves("abc", 24), reclaim="FairShare")
    for i in range(24):
        played.submit(100 + i, "a", 1, 1, 100 * HOUR)
        played.submit(200 + i, "b", 1, 1, 100 * HOUR, at=60)
        played.submit(300 + i, "c", 1, 1, 100 * HOUR, at=60)
    played.play(HOUR)
    assert run_by(played) == {"a": 8, "b": 8, "c": 8}
    assert {kill.job // 100 for kill in played.kills} == {1} and len(played.kills) == 16


def test_from_a_priority_on_a_job_takes_the_place_of_one_below_that_borrows():
    played = VirtualFleet.of(16, *leaves("ab", 16), **{"borrowing-priority": "10"})
    played.submit(1, "a", 1, 8, 100 * HOUR)
    played.submit(2, "b", 1, 8, 100 * HOUR, priority=10)
    played.submit(3, "a", 1, 8, 100 * HOUR, at=60, priority=9)
    played.submit(4, "b", 1, 8, 100 * HOUR, at=600, priority=10)
    played.play(HOUR)
    assert [(kill.job, kill.preemptor) for kill in played.kills] == [(1, 4)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_fleets_come_to_rest_and_stop_nothing_that_they_have_just_placed(seed):
    """Teams, mins, priorities, big gangs with reserved nodes, slow leavers; `VirtualFleet.rest` fails where cycles go on."""
    played = random_fleet(seed, reclaim="FairShare")
    played.play(3 * HOUR, tick=600.0)
    assert [kill.job for kill in played.kills if kill.surprised] == []
    assert all(times == 1 for times in Counter(played.claims).values())
    assert played.claims or IS_FULL
