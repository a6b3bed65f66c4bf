"""The silence that is too long, from a training's own reports: worked cases, and a law against a recount."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import hangs

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


def paced(*reports, saved=None):
    """``reports``: steps and when they were reported."""
    (step, at), *others = reports
    pace = hangs.first(step, saved, at)
    for step, at in others:
        pace = pace.after(step, saved, at)
    return pace


def test_silence_is_too_long_after_ten_usual_steps_and_120_seconds_at_least():
    assert paced((1, 0), (2, 5)).limit_s(120) == 120
    assert paced((1, 0), (2, 60)).limit_s(120) == 600
    assert paced((1, 0), (2, 60)).limit_s(1800) == 1800


def test_no_silence_is_allowed_for_longer_than_30_days():
    assert paced((1, 0), (2, 400_000)).limit_s(120) == paced((1, 0), (2, 5)).limit_s(9e9) == 30 * 86400


def test_the_first_step_is_never_too_long_nor_the_first_after_the_processes_were_started_again():
    assert paced((0, 0)).limit_s(120) is None
    assert paced((0, 0), (0, 9000)).limit_s(120) is None
    assert paced((10, 0), (11, 5), (9, 300)).limit_s(120) is None


def test_a_report_without_a_new_step_ends_no_silence():
    assert paced((1, 0), (2, 5), (2, 90)).at == 5


def test_a_checkpoint_slows_no_step_and_the_next_may_take_as_long():
    pace = paced((1, 0), (2, 10)).after(3, 3, 320)
    assert (pace.mean_s, pace.saving_s, pace.longest_save_s) == (10, 300, 300)
    assert pace.limit_s(120) == 420
    assert pace.after(4, 4, 350).longest_save_s == 300 and pace.after(4, 4, 350).saving_s == 320


STEPS = st.lists(st.tuples(st.integers(1, 5), st.floats(0.5, 100)), min_size=1, max_size=30)


@given(STEPS, st.sampled_from([1.0, 120.0]))
def test_the_limit_is_that_of_the_weighted_mean_of_all_steps(steps, least_s):
    """The oracle sums the weights of all reports instead of carrying a mean along."""
    step, at, each = 0, 0.0, []
    pace = hangs.first(0, None, 0.0)
    for count, took in steps:
        step, at = step + count, at + took
        each.append(took / count)
        pace = pace.after(step, None, at)
    weights = [0.8 ** (len(each) - 1)] + [0.2 * 0.8 ** (len(each) - 1 - n) for n in range(1, len(each))]
    mean = sum(weight * took for weight, took in zip(weights, each, strict=True))
    limit_s = pace.limit_s(least_s)
    assert limit_s is not None and abs(limit_s - max(least_s, 10 * mean)) < 1e-6 * limit_s
    assert pace.at == at


def line(second, text):
    return f"2026-11-26T12:00:{second:02}Z {text}\n"


SILENCE = '{"name":"convoy.silence","rank":0,"step":%s,"silent_s":130.1}'


def test_the_training_says_itself_that_it_hangs_and_its_stacks_are_no_sign_of_life():
    log = line(1, "step 7") + line(40, SILENCE % 7) + line(41, '{"name":"convoy.stack","frames":[]}')
    assert hangs.signs(log) == hangs.Signs(NOON.replace(second=1), 7)
    assert hangs.signs(log + line(50, '{"name":"convoy.resumed","step":8}')).silent_step is None


def test_a_log_without_times_or_with_none_says_nothing():
    assert hangs.signs("step 7\n") == hangs.signs("") == hangs.Signs()
    assert hangs.signs(line(1, SILENCE % '"x"')).silent_step is None


@given(
    st.lists(
        st.sampled_from([line(3, "x"), SILENCE % 3, SILENCE % "9e999", '{"name":"convoy.', "\x00"])
        | st.text(max_size=9)
    )
)
def test_any_log_is_read(pieces):
    assert isinstance(hangs.signs("".join(pieces)), hangs.Signs)
