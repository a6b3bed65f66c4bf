"""Nodes kept for a big gang and the quota's promises: what was promised is not lent to the gang to be taken back at once."""

from random import Random

import pytest

from tests.jobs.core.playing import GPU, VirtualFleet, random_fleet
from tests.quotas.core.builders import quota

HOUR = 3600.0


def backlog() -> VirtualFleet:
    """Team a has more work than its 40 of 64 GPUs hold; of b's 24 three jobs have all, and a gang of 32 GPUs waits."""
    fleet = VirtualFleet.of(64, quota("a", {GPU: 40}, {GPU: 40}), quota("b", {GPU: 24}, {GPU: 64}))
    rng = Random(1)
    for job in range(1, 60):
        fleet.submit(job, "a", 1, 8, rng.randint(20, 90) * 60, at=0 if job <= 7 else rng.randint(0, 5 * 3600))
    for job in range(101, 104):
        fleet.submit(job, "b", 1, 8, 3 * HOUR)
    fleet.submit(200, "b", 4, 8, HOUR, at=1)
    return fleet


def test_it_starts_no_gang_on_kept_nodes_that_others_are_promised_and_take_back_at_once():
    fleet = backlog()
    fleet.play(6 * HOUR)
    assert fleet.kept_for == {200} and fleet.kills == []


def test_it_starts_the_one_that_was_promised_the_kept_nodes_as_soon_as_they_are_free():
    fleet = VirtualFleet.of(64, quota("a", {GPU: 40}, {GPU: 40}), quota("b", {GPU: 24}, {GPU: 64}))
    for job in range(1, 6):
        fleet.submit(job, "a", 1, 8, 700 if job == 5 else 10 * HOUR)
    fleet.submit(200, "b", 4, 8, 10 * HOUR, at=1)
    for job in (6, 7):
        fleet.submit(job, "a", 1, 8, 10 * HOUR, at=2)
    fleet.play(800)
    assert fleet.kept_for == {200} and [job for at, job in fleet.starts if at >= 700] == [6]


def test_it_still_starts_the_gang_once_nobody_is_promised_its_nodes():
    fleet = backlog()
    fleet.play(16 * HOUR)
    assert 200 in {job for _, job in fleet.starts} and fleet.short_kills() == []


@pytest.mark.parametrize("seeds", [range(0, 12), range(600, 612)])
def test_it_does_not_start_gangs_on_kept_nodes_only_to_stop_them(seeds):
    kills, short = 0, []
    for seed in seeds:
        fleet = random_fleet(seed)
        fleet.play(4 * HOUR, tick=120.0)
        kills += len(fleet.kills)
        short += fleet.short_kills()
        assert not {kill.job for kill in fleet.short_kills()} & fleet.kept_for, seed
    assert kills > 10 and len(short) <= 0.05 * kills
