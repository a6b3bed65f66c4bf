"""Goodput from spans: worked cases, and a law against a recount of every millisecond that shares no code."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from jobs.core.explain import goodput
from jobs.core.explain.accounting import Span
from jobs.core.explain.goodput import Part, Pauses, Stop


def span(number, kind, begin, end, outcome="", gpus=2, job="a"):
    return Span(job, number, kind, begin, end, gpus, outcome, "vision", "ann", "root/a", "north", "H100", None)


FAILED_ONCE = [
    span(0, "queue", 0, 100),
    span(1, "image", 100, 110, "Failed"),
    span(1, "saved", 110, 150, "Failed"),
    span(1, "unsaved", 150, 170, "Failed"),
    span(0, "moving", 170, 200),
    span(2, "member", 200, 230, "Succeeded"),
    span(2, "running", 230, 300, "Succeeded"),
]
STOPS = {("a", 1): Stop("infrastructure", "north/n1")}


def added(spans, stops=STOPS, pauses=None, begin=0, end=1000, name_of=lambda _: "all"):
    return goodput.add_up(goodput.slices(spans, stops, pauses or {}), begin, end, name_of, name_of)


def test_a_failure_costs_what_was_not_saved_the_wait_and_the_start():
    times = added(FAILED_ONCE)["all"]
    assert dict(times.ms) == {Part.WAITING: 130, Part.RESTART: 40, Part.PRODUCTIVE: 110, Part.LOST: 20}
    assert times.gpu_ms[Part.PRODUCTIVE] == 220 and times.failures == 1
    assert times.ettr == 110 / 200 and times.mtbf_ms == 130
    by_class = added(FAILED_ONCE, name_of=lambda each: each.stop.category if each.stop else None)
    assert dict(by_class["infrastructure"].ms) == {Part.LOST: 20, Part.WAITING: 30, Part.RESTART: 30}


def test_a_preemption_is_no_failure_and_time_in_which_a_user_suspended_a_job_counts_nowhere():
    spans = [
        span(1, "running", 0, 100, "Reclaimed"),
        span(0, "quota", 100, 130),
        span(0, "suspended", 130, 900),
        span(2, "running", 900, 950),
    ]
    times = added(spans, {("a", 1): Stop("preemption")})["all"]
    assert dict(times.ms) == {Part.UNKNOWN: 100, Part.WAITING: 30, Part.PRODUCTIVE: 50}
    assert times.failures == 0 and times.mtbf_ms is None


def test_hung_time_is_neither_productive_nor_lost_and_checkpoints_take_their_share():
    pauses = {("a", 1): Pauses(((140, 160),)), ("a", 2): Pauses(checkpoint=7)}
    times = added(FAILED_ONCE, pauses=pauses)["all"]
    assert dict(times.ms) == {
        Part.WAITING: 130, Part.RESTART: 40, Part.PRODUCTIVE: 93, Part.LOST: 10, Part.HUNG: 20, Part.CHECKPOINT: 7,
    }  # fmt: skip


def test_a_failure_counts_in_the_time_in_which_it_ended():
    assert added(FAILED_ONCE, begin=0, end=169)["all"].failures == 0
    assert added(FAILED_ONCE, begin=170, end=300)["all"].failures == 0
    assert added(FAILED_ONCE, begin=169, end=170)["all"].failures == 1


def test_a_job_without_time_has_no_ratio():
    times = added([span(0, "queue", 0, 100)])["all"]
    assert (times.ettr, times.mtbf_ms, times.failures) == (None, None, 0)


@dataclass
class Life:
    """What happened in each millisecond of a job, and the spans and pauses that say so."""

    spans: list
    stops: dict
    pauses: dict
    seen: list


@st.composite
def lives(draw):
    """Attempts one after another, each with a wait, a start and a run that may hang, and may end badly."""
    spans, stops, pauses, seen, at = [], {}, {}, [], 0
    blame = None
    for number in range(1, draw(st.integers(1, 4)) + 1):
        wait, start, run = draw(st.integers(0, 5)), draw(st.integers(0, 4)), draw(st.integers(1, 12))
        kind = draw(st.sampled_from(["moving", "suspended"])) if number > 1 else "queue"
        spans.append(span(0, kind, at, at + wait))
        seen += [] if kind == "suspended" else [("waiting", blame)] * wait
        at += wait
        ends = draw(st.sampled_from(["Succeeded", "Failed", "Lost", "Reclaimed", "Suspended"]))
        spans.append(span(number, "image", at, at + start, ends))
        seen += [("restart", blame)] * start
        at += start
        saved = draw(st.none() | st.integers(0, run))
        hang = draw(st.none() | st.tuples(st.integers(0, run), st.integers(0, run)).map(sorted))
        is_cut = ends in ("Failed", "Lost", "Reclaimed")
        own = f"c{number}" if is_cut else None
        if is_cut:
            stops["a", number] = Stop(own)
        if is_cut and saved is not None:
            spans += [span(number, "saved", at, at + saved, ends), span(number, "unsaved", at + saved, at + run, ends)]
        else:
            spans.append(span(number, "running", at, at + run, ends))
        if hang:
            pauses["a", number] = Pauses(((at + hang[0], at + hang[1]),))
        for n in range(run):
            if hang and hang[0] <= n < hang[1]:
                seen.append(("hung", own))
            elif not is_cut or (saved is not None and n < saved):
                seen.append(("productive", None))
            else:
                seen.append(("unknown" if saved is None else "lost", own))
        at += run
        blame = own
    return Life([each for each in spans if each.begin < each.end], stops, pauses, seen)


@given(lives(), st.randoms())
def test_every_millisecond_is_counted_once_and_owed_to_what_stopped_the_attempt_before(life, random):
    random.shuffle(life.spans)
    counted = Counter()

    def name_of(each):
        return each.stop.category if each.stop else ""

    for name, times in added(life.spans, life.stops, life.pauses, name_of=name_of).items():
        for part, ms in times.ms.items():
            counted[part.value, name or None] += ms
    assert +counted == Counter(life.seen)
