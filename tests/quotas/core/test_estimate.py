"""When a waiting job may start, and what the guess rests on: no guess is better than a made-up one."""

from datetime import timedelta

from quotas.core.estimate import RunTimes, estimate_starts
from tests.quotas.core.builders import NOON, ledger, occupied, quota, running, unit


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def guessed(found, jobs, waiting, ran, now=NOON):
    return estimate_starts(found, occupied(found, *jobs), waiting, RunTimes(found, ran), now)


def queue_of_two():
    """One job at a time."""
    return ledger(9, quota("a", 0, 1), quota("b"))


def test_it_adds_up_the_median_run_times_of_the_queue():
    waiting = [unit("first"), unit("second", after_s=1)]
    found = guessed(queue_of_two(), [running("now")], waiting, {"root/a": [50, 60, 70]}, after(10))
    assert found["first"].starts_at == after(60)
    assert found["first"].message == "median of 3 finished jobs of root/a"
    assert found["second"].starts_at == after(120)


def test_it_takes_what_has_run_already_into_account():
    ran = {"root/a": [10, 20, 100, 200, 300]}
    found = guessed(queue_of_two(), [running("now")], [unit("waits")], ran, after(50))
    assert (found["waits"].starts_at, found["waits"].basis.jobs) == (after(200), 3)


def test_it_says_nothing_without_enough_finished_jobs():
    assert guessed(queue_of_two(), [running("now")], [unit("waits")], {"root/a": [60, 60]}) == {"waits": None}
    assert guessed(queue_of_two(), [running("now")], [unit("waits")], {}) == {"waits": None}


def test_it_says_nothing_about_what_waits_for_a_job_older_than_any_before():
    found = guessed(queue_of_two(), [running("now")], [unit("waits")], {"root/a": [60] * 9}, after(61))
    assert found == {"waits": None}


def test_it_looks_at_the_node_above_where_the_queue_has_seen_too_little():
    found = guessed(queue_of_two(), [running("now")], [unit("waits")], {"root/a": [60], "root/b": [90, 120]})
    assert (found["waits"].starts_at, found["waits"].basis.path) == (after(90), "root")


def test_it_waits_for_whoever_fills_the_node_above():
    found = guessed(
        ledger(4, quota("a"), quota("b")), [running("now", "b", 4)], [unit("waits", "a", 2)], {"root/b": [30] * 3}
    )
    assert found["waits"].starts_at == after(30)
    assert found["waits"].basis.path == "root/b"


def test_it_tells_that_the_quota_has_room_already():
    [found] = guessed(queue_of_two(), [], [unit("fits")], {}).values()
    assert (found.starts_at, found.message) == (NOON, "the quota has room now; the clusters decide")


def test_it_lets_higher_priorities_in_first():
    waiting = [unit("low"), unit("high", priority=5, after_s=9)]
    found = guessed(queue_of_two(), [running("now")], waiting, {"root/a": [60] * 3})
    assert [found[name].starts_at for name in ("high", "low")] == [after(60), after(120)]


def test_it_never_starts_what_can_never_fit_and_is_not_held_up_by_it():
    waiting = [unit("huge", cores=5), unit("waits", after_s=1)]
    found = guessed(queue_of_two(), [running("now")], waiting, {"root/a": [60] * 3})
    assert found["huge"] is None and found["waits"].starts_at == after(60)


def test_it_lets_nobody_pass_one_who_holds_up_its_queue():
    found = ledger(4, quota("a", 0, 4, attributes={"queue-policy": "Block"}))
    waiting = [unit("large", cores=3), unit("small", after_s=1), unit("last", cores=2, after_s=2)]
    told = guessed(found, [running("now", cores=2)], waiting, {"root/a": [60] * 3})
    assert [told[name].starts_at for name in ("large", "small", "last")] == [after(60), after(60), after(120)]
    told = guessed(
        found, [running("now", cores=2)], [unit("huge", cores=5), unit("small", after_s=1)], {"root/a": [60] * 3}
    )
    assert told == {"huge": None, "small": None}


def test_it_leaves_the_ledger_as_it_was():
    found = queue_of_two()
    guessed(found, [running("now")], [unit("waits")], {"root/a": [60] * 3})
    assert found.used("root")["cpu"] == 1000
