"""One bar from submitted to done: no gap, nobody twice, and the right owner at each moment."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from jobs.core.explain import timeline
from jobs.core.explain.timeline import Gate, Owner, Passage, Run, Turn
from jobs.core.reasons import Code

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def run(number: int, *times: int | None, outcome: str = "") -> Run:
    placed, pods, started, ended = (None if each is None else at(each) for each in times)
    assert placed
    return Run(number, f"c{number}", placed, pods, started, ended, outcome)


def told(waited: list[tuple[Owner, int]], *runs: Run, now: int, done: int | None = None) -> list[tuple[str, float]]:
    turns = [Turn(owner, at(when)) for owner, when in waited]
    finished = None if done is None else at(done)
    return [(each.owner.value, each.seconds) for each in timeline.slices_of(T0, finished, turns, runs, at(now))]


def test_it_tells_a_job_from_submitted_to_done():
    waited = [(Owner.QUEUE, 1), (Owner.QUOTA, 5), (Owner.PLACEMENT, 9)]
    found = told(waited, run(1, 10, 12, 15, 40, outcome="Succeeded"), now=99, done=40)
    assert found == [
        ("queue", 5), ("quota", 4), ("placement", 1), ("member", 2), ("image", 3), ("running", 25)
    ]  # fmt: skip


def test_it_ends_with_an_open_slice_while_it_goes_on():
    last = timeline.slices_of(T0, None, [], [run(1, 10, 12, 15, None)], at(20))[-1]
    assert (last.owner, last.open, last.ends_at, last.cluster) == (Owner.RUNNING, True, at(20), "c1")


def test_it_calls_the_time_between_two_clusters_moving():
    runs = [run(1, 1, None, 2, 10, outcome="Lost"), run(2, 14, None, None, None)]
    found = told([(Owner.PLACEMENT, 11)], *runs, now=20)
    assert found == [("queue", 1), ("member", 1), ("running", 8), ("moving", 4), ("member", 6)]


def test_it_hears_no_waiting_while_an_attempt_lasts():
    assert told([(Owner.QUOTA, 5)], run(1, 1, None, None, None), now=9) == [("queue", 1), ("member", 8)]


def test_it_tells_a_suspension():
    runs = [run(1, 1, None, 2, 10, outcome="Suspended")]
    found = told([(Owner.SUSPENDED, 10), (Owner.QUEUE, 15)], *runs, now=16)
    assert found[-2:] == [("suspended", 5), ("queue", 1)]


def test_it_begins_with_the_turn_of_a_cycle_that_is_older_than_the_job():
    assert told([(Owner.QUOTA, -1)], now=9) == [("quota", 9)]
    assert told([(Owner.PLACEMENT, -3), (Owner.QUOTA, -1)], run(1, 4, None, None, None), now=9) == [
        ("quota", 4),
        ("member", 5),
    ]


@given(st.lists(st.tuples(st.sampled_from(list(Code)), st.integers(-5, 50)), min_size=1, max_size=6))
def test_it_ends_with_the_owner_of_the_gate_where_the_job_stands(codes) -> None:
    kept: list[list[str]] = []
    for code, when in sorted(codes, key=lambda each: each[1]):
        reason = {"code": code.value}
        kept = timeline.enter_owner(kept, timeline.owner_of(reason), at(when))
    found = timeline.slices_of(T0, None, timeline.parse_turns(kept), [], at(60))
    assert found[-1].owner is timeline.owner_of(reason) and found[0].starts_at == T0
    assert sum(each.seconds for each in found) == 60


@given(
    st.lists(st.tuples(st.sampled_from(list(Owner)), st.integers(0, 60)), max_size=8),
    st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), max_size=3),
)
def test_it_leaves_no_gap_and_tells_no_moment_twice(waited, shapes):
    runs, clock = [], 0
    for number, (a, b, c, d) in enumerate(shapes):
        runs.append(run(number + 1, clock + a, clock + a + b, clock + a + b + c, clock + a + b + c + d, outcome="Lost"))
        clock += a + b + c + d
    found = timeline.slices_of(T0, None, [Turn(owner, at(when)) for owner, when in waited], runs, at(100))
    assert found[0].starts_at == T0 and found[-1].ends_at == at(100)
    assert all(one.ends_at == other.starts_at for one, other in zip(found, found[1:], strict=False))


def test_it_keeps_a_turn_once():
    kept = timeline.enter_owner([], Owner.QUEUE, at(0))
    assert timeline.enter_owner(kept, Owner.QUEUE, at(5)) == kept
    assert timeline.parse_turns(timeline.enter_owner(kept, Owner.QUOTA, at(5)))[-1] == Turn(Owner.QUOTA, at(5))


def gate(code: str, **reason: object) -> Gate:
    return timeline.gate_of({"code": code, **reason})


def test_it_stands_before_the_gate_that_will_never_open():
    assert gate(Code.NEVER_FITS) is Gate.PLACEMENT
    assert gate(Code.NEVER_FITS, quota={"code": Code.FITS}) is Gate.PLACEMENT
    assert gate(Code.NEVER_FITS, quota={"code": Code.NEVER_FITS}) is Gate.QUOTA


def test_it_has_a_gate_and_an_owner_for_every_code():
    assert gate(Code.NO_CLUSTER_FITS) is Gate.PLACEMENT is gate("of a newer server")
    assert all(timeline.owner_of({"code": code}) in Owner for code in Code)


def test_it_climbs_the_ladder():
    steps = dict(timeline.gates_of({"code": Code.QUOTA_EXCEEDED}, through=False))
    assert (steps[Gate.QUEUE], steps[Gate.QUOTA], steps[Gate.MEMBER]) == tuple(map(Passage, ("passed", "now", "next")))
    assert {passage for _, passage in timeline.gates_of({}, through=True)} == {Passage.PASSED}
