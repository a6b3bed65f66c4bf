"""The attribute `windows`: what it reads, when it is open, what is refused of trees that it would break."""

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from quotas.core.trees import window_trees, windows
from quotas.core.trees.parsing import parse_tree
from quotas.core.trees.tree import ExcessPolicy
from tests.quotas.core.builders import manifest, quota, tree

NIGHT = {"cron": "0 20 * * *", "duration": "12h", "min": {"cpu": 8}}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def stated(*entries: dict) -> dict[str, str]:
    return {"windows": json.dumps(entries)}


def faults_of(text: object) -> list[str]:
    read = parse_tree(manifest(quota("root", 10, 10, quota("a", attributes={"windows": text}))))
    return [f"{fault.field}: {fault.detail}" for fault in read.faults]


@pytest.mark.parametrize(("entry", "fault"), [
    ({"from": "2026-03-01T08:00:00Z", "to": "2026-03-01T07:00:00Z", "min": {"cpu": 1}}, "window 1: to must be after from"),
    ({"from": "2026-03-01T08:00:00", "to": "2026-03-01T09:00:00Z", "min": {"cpu": 1}}, "from must be a time with its zone"),
    ({"to": "2026-03-01T09:00:00Z", "min": {"cpu": 1}}, "from must be a time with its zone, such as"),
    ({"cron": "0 8 * * *", "min": {"cpu": 1}}, "duration is required beside cron"),
    ({"cron": "0 8 * *", "duration": "1h", "min": {"cpu": 1}}, "cron must be five fields"),
    ({"cron": "* * * * *", "duration": "1h", "min": {"cpu": 1}}, "cron opens it 1440 times a day"),
    ({"cron": "0 8 * * *", "duration": "32d", "min": {"cpu": 1}}, "duration must be a duration"),
    ({"cron": "0 8 * * *", "duration": "30s", "min": {"cpu": 1}}, "from 1m to 31d, not '30s'"),
    ({**NIGHT, "time-zone": "Mars/Base"}, "time-zone must be a name such as Europe/Berlin, not 'Mars/Base'"),
    ({**NIGHT, "time-zone": "../../etc/passwd"}, "time-zone must be a name"),
    ({**NIGHT, "from": "2026-03-01T08:00:00Z"}, "from goes without cron"),
    ({**NIGHT, "until": 5}, "'until' is no key of a window; known are from, to"),
    ({"cron": "0 8 * * *", "duration": "1h"}, "must state a min or a max"),
    ({**NIGHT, "min": {"cpu": "0.0001"}}, "min cpu"), ({**NIGHT, "max": 5}, "max must be amounts"),
    ({**NIGHT, "lead": "x"}, "lead must be a duration"),
])  # fmt: skip
def test_it_refuses_a_window_by_its_number_and_says_what_it_takes(entry, fault):
    [found] = faults_of(json.dumps([entry]))
    assert fault in found and found.startswith("spec.root.children[0].attributes.windows: root/a: window 1: ")


@pytest.mark.parametrize("text", ["{", "5", '{"cron": 1}', "[1]", json.dumps([NIGHT] * 21)])
def test_it_refuses_what_is_no_list_of_windows(text):
    [found] = faults_of(text)
    assert "attributes.windows" in found and ("JSON list" in found or "at most 20" in found)


def test_an_open_window_replaces_what_it_names_and_nothing_else():
    low = {"cpu": 2, "memory": "1Gi"}
    both = tree({"cpu": 10, "memory": "8Gi"}, quota("a", low, {"cpu": 6, "memory": "8Gi"},
                attributes=stated({**NIGHT, "max": {"cpu": 9}})), quota("b"))  # fmt: skip
    by_day, by_night = (window_trees.at(both, at(f"2026-03-10T{hour}")) for hour in ("19:59", "20:00"))
    assert by_day == both
    node = by_night.by_path["root/a"]
    assert node.min == {"cpu": 8000, "memory": 2**30} and node.max == {"cpu": 9000, "memory": 8 * 2**30}
    assert (
        window_trees.at(both, at("2026-03-11T07:59")) == by_night
        and window_trees.at(both, at("2026-03-11T08:00")) == both
    )
    assert both.by_path["root/a"].attributes.excess is ExcessPolicy.WAIT, "the clock cannot be refused"


def test_of_two_open_windows_the_later_in_the_list_counts():
    base = {"from": "2026-03-10T00:00:00Z", "to": "2026-03-11T00:00:00Z"}
    both = tree(10, quota("a", 1, 9, attributes=stated({**base, "min": {"cpu": 3}}, {**base, "min": {"cpu": 5}})))
    assert window_trees.at(both, at("2026-03-10")).by_path["root/a"].min == {"cpu": 5000}


def test_shifts_that_follow_each_other_are_accepted_and_ones_that_overlap_are_refused_with_both_numbers():
    day = {"cron": "0 8 * * *", "duration": "12h", "min": {"cpu": 8}}
    for length, expected in (("12h", []), ("13h", [
        "spec.root.children[0].attributes.windows", "root/a: from 2026-03-10 08:00:00 UTC on, with windows of root/a, root/b"
        " open: the children of root have min 16 cpu together, more than its 10 cpu",
    ])):  # fmt: skip
        body = manifest(quota("root", 10, 10, quota("a", 0, 10, attributes=stated(day)),
                              quota("b", 0, 10, attributes=stated({**NIGHT, "duration": length}))))  # fmt: skip
        read = parse_tree(body)
        assert read.tree is not None
        faults = window_trees.find_faults(body, read.tree, at("2026-03-10T03:00"))
        assert [part for each in faults for part in (each.field, each.detail)] == expected


def test_a_window_that_ends_before_another_may_break_the_tree_too():
    """a gives 6 to b: a's window ends an hour before b's."""
    body = manifest(quota("root", 10, 10,
        quota("a", 8, 10, attributes=stated({**NIGHT, "duration": "11h", "min": {"cpu": 2}})),
        quota("b", 0, 10, attributes=stated(NIGHT))))  # fmt: skip
    read = parse_tree(body)
    assert read.tree is not None
    [fault] = window_trees.find_faults(body, read.tree, at("2026-03-10T12:00"))
    assert "from 2026-03-11 07:00:00 UTC on" in fault.detail and "16 cpu together" in fault.detail


@pytest.mark.parametrize("seed", range(40))
def test_what_is_open_and_what_comes_is_what_a_walk_over_every_minute_finds(seed):
    rng = Random(seed)
    now = datetime(2026, 3, 27, 22, rng.randint(0, 59), tzinfo=UTC)  # the clocks of Berlin change two days later
    entries = [_random_window(rng, now) for _ in range(rng.randint(1, 4))]
    root = tree(10, *(quota(f"q{i}", 0, 10, attributes=stated(entry)) for i, entry in enumerate(entries)))
    minutes = [now + timedelta(minutes=n) for n in range(3 * 24 * 60)]
    walked = [frozenset(each.id for each in windows.open_at(root.nodes, minute)) for minute in minutes]
    seen, expected = set(), []
    for before, after, minute in zip(walked, walked[1:], minutes[1:], strict=False):
        if after - before and (after, after - before) not in seen:
            expected.append((minute, after))
            seen.add((after, after - before))
    found = windows.ahead(root.nodes, now, timedelta(days=3))
    assert [(moment, frozenset(each.id for each in entries)) for moment, entries in found] == expected
    assert all(each.begin <= moment < each.end for moment, entries in found for each in entries)


def _random_window(rng: Random, now: datetime) -> dict:
    amounts = {"min": {"cpu": 1}}
    if rng.random() < 0.5:
        begin = now + timedelta(minutes=rng.randint(-2000, 4000))
        end = begin + timedelta(minutes=rng.randint(1, 2000))
        return {"from": begin.isoformat(), "to": end.isoformat(), **amounts}
    cron = f"{rng.randint(0, 59)} {rng.randint(0, 23)} * * *"
    zone = rng.choice(["UTC", "Europe/Berlin", "Asia/Shanghai"])
    return {"cron": cron, "duration": f"{rng.randint(1, 1300)}m", "time-zone": zone, **amounts}
