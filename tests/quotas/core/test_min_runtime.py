"""The attribute `min-runtime`: what it reads, what it inherits, its ceiling; and the order of reclaim that follows from it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from quotas.core import impact
from quotas.core.impact import Side
from quotas.core.reclaiming.candidates import protected_until
from quotas.core.reclaiming.reclaim import plan_reclaim
from quotas.core.trees.durations import format_duration, parse_duration
from quotas.core.trees.parsing import parse_tree
from tests.quotas.core.builders import NOON, ledger, manifest, occupied, quota, running, tree, unit

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "minutes"), [("90s", 1.5), ("10m", 10), ("1h30m", 90), ("2d", 2880), ("0s", 0), ("1d1h1m60s", 1502)]
)
def test_it_reads_durations_and_writes_them_again(text, minutes):
    assert parse_duration(text) == minutes * MINUTE
    assert parse_duration(format_duration(minutes * MINUTE)) == minutes * MINUTE


@pytest.mark.parametrize("text", ["", "10", "m", "-1m", "1.5h", "1m1h", " 1m", "1M", "٣m", None, 10, "9" * 400 + "s"])
def test_it_reads_nothing_else(text):
    assert parse_duration(text) is None


def runtimes(**attributes: str) -> dict[str, timedelta]:
    team = quota(
        "team", 4, 10, quota("x"), quota("y", attributes={"min-runtime": "0s"}), attributes={"min-runtime": "10m"}
    )
    found = tree(10, team, quota("b"), attributes={key.replace("_", "-"): value for key, value in attributes.items()})
    return {node.path: node.attributes.min_runtime for node in found.nodes}


def test_a_queue_has_that_of_its_parent_unless_it_states_its_own():
    assert runtimes(min_runtime="5m") == {
        "root": 5 * MINUTE,
        "root/team": 10 * MINUTE,
        "root/team/x": 10 * MINUTE,
        "root/team/y": 0 * MINUTE,
        "root/b": 5 * MINUTE,
    }


def faults(root: dict[str, str], leaf: dict[str, str]) -> str:
    read = parse_tree(manifest(quota("root", 10, 10, quota("a", attributes=leaf), attributes=root)))
    return "; ".join(f"{fault.field} {fault.detail}" for fault in read.faults)


@pytest.mark.parametrize(
    ("root", "leaf", "fault"),
    [
        ({}, {"min-runtime": "1h"}, ""),
        ({}, {"min-runtime": "61m"}, "a: must be at most 1h, the min-runtime-ceiling, not 61m"),
        ({"min-runtime-ceiling": "2h"}, {"min-runtime": "61m"}, ""),
        ({"min-runtime-ceiling": "5m"}, {"min-runtime": "6m"}, "must be at most 5m"),
        ({"min-runtime-ceiling": "31d"}, {}, "must be at most 30d"),
        ({}, {"min-runtime-ceiling": "2h"}, "is for the root alone"),
        ({}, {"min-runtime": "soon"}, "must be a duration such as 90s"),
    ],
)
def test_it_refuses_more_than_the_ceiling_of_the_tree(root, leaf, fault):
    assert (fault in faults(root, leaf)) if fault else not faults(root, leaf)


def test_it_protects_for_so_long_after_the_admission_even_when_the_clock_was_set_back():
    found = tree(10, quota("a", attributes={"min-runtime": "10m"}), quota("b"))
    assert protected_until(found, "root/a", NOON, NOON + 9 * MINUTE) == NOON + 10 * MINUTE
    assert protected_until(found, "root/a", NOON, NOON + 10 * MINUTE) is None
    assert protected_until(found, "root/a", NOON + 60 * MINUTE, NOON) == NOON + 10 * MINUTE
    assert protected_until(found, "root/b", NOON, NOON) is None


def borrowed():
    found = ledger(8, quota("a", 4, 8), quota("b"), quota("c"))
    jobs = occupied(
        found,
        running("early", "b", 2),
        running("late", "b", 2),
        running("open", "c", 2, at_s=-9000),
        running("own", "a", 2),
    )
    ends = {"early": NOON + MINUTE, "late": NOON + 2 * MINUTE}
    return found, [replace(job, protected_until=ends.get(job.key)) for job in jobs]


@pytest.mark.parametrize(("cores", "victims", "wait"), [(2, {"open"}, 0)])
def test_it_takes_what_is_not_protected_first(cores, victims, wait):
    found, jobs = borrowed()
    made = plan_reclaim(found, unit("new", "a", cores), jobs, lambda _gone: True)
    assert {victim.key for victim in made.victims} == victims and made.protected_until is None


def test_it_takes_of_the_protected_those_whose_end_is_next():
    found, jobs = borrowed()
    found.release(jobs[3].charge)
    found.charge(jobs[3].charge.__class__("root/c", jobs[3].charge.amounts))
    jobs[3] = replace(
        jobs[3], charge=jobs[3].charge.__class__("root/c", jobs[3].charge.amounts), protected_until=NOON + 3 * MINUTE
    )
    made = plan_reclaim(found, unit("new", "a", 4), jobs, lambda _gone: True)
    assert {victim.key for victim in made.victims} == {"open", "early"} and made.protected_until == NOON + MINUTE


def test_a_preview_says_when_a_job_may_leave_at_the_earliest():
    found = tree(4, quota("a", 4, 4), quota("b"))
    ran = replace(running("long", "b", 4), protected_until=NOON + 5 * MINUTE)
    [line] = impact.compute_effect(None, Side(found, [ran], [unit("new", "a", 4)]), NOON).reclaimed
    assert line.not_before == NOON + 5 * MINUTE and "not before 2026-01-01 12:05:00 UTC" in line.message
