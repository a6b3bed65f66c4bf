"""What reports of trainings are read as: by the protocol, within bounds, and with steps that outweigh a percentage."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import progress
from jobs.runtime.progress import Progress, Unprocessable, received

NOW = 1_800_000_000.0


def body(percent=None, eta=None, **metrics):
    status = {
        "lastUpdatedTime": "2027-01-15T08:00:00+00:00",
        "progressPercentage": percent,
        "estimatedRemainingSeconds": eta,
    }
    status["metrics"] = [{"name": name, "value": str(value)} for name, value in metrics.items()]
    return json.dumps({"trainerStatus": {name: value for name, value in status.items() if value is not None}}).encode()


def after(*bodies, begins=NOW):
    read = None
    for second, each in enumerate(bodies):
        read = received(each, read, begins + second)
    return read


def test_it_reads_the_steps_of_transformers_and_keeps_what_a_later_report_leaves_out():
    read = after(
        body(0, total_steps=3000),
        body(2, 600, current_step=64, total_steps=3000, loss=3.5),
        body(100, 0, train_loss=3.6),
    )
    assert (read.step, read.total, read.percent, read.eta_s, read.loss) == (64, 3000, 100, 0, 3.5)
    assert read.claimed_at == NOW + 2


@pytest.mark.parametrize(
    ("reports", "asked_s", "complete"),
    [
        ([body(2, current_step=64, total_steps=3000), body(100)], 0.5, False),
        ([body(99, current_step=2987, total_steps=3000), body(100)], 0.5, False),
        ([body(99, current_step=2987, total_steps=3000), body(100)], 5, True),
        ([body(99, current_step=3000, total_steps=3000)], -60, True),
        ([body(100)], -60, False),
        ([body(100)], 60, True),
        ([body(100), body(40)], 60, False),
        ([body(50, current_step=3000)], 60, False),
        ([body(total_steps=0, current_step=0)], 60, False),
    ],
    ids=[
        "jit",
        "jit-near-the-end",
        "claimed-before",
        "all-steps",
        "claimed-after",
        "no-steps",
        "taken-back",
        "no-total",
        "none",
    ],
)
def test_an_end_is_told_from_a_stop(reports, asked_s, complete):
    assert after(*reports).is_complete(NOW + asked_s) is complete


def test_it_survives_its_way_over_the_copy_and_is_not_believed_on_another():
    read = after(body(50, 7, current_step=5, total_steps=10, loss="nan", world_size=8, saved_step=4))
    assert read.loss is None
    assert progress.read(read.written("u"), "u") == read
    assert progress.read(read.written("u"), "v") is None is progress.read(read.written(""), "")
    claimed = after(body(100))
    assert progress.read(claimed.written("u"), "u") == claimed


def test_a_report_after_the_clock_was_set_back_is_newer_all_the_same():
    ahead = received(body(10, current_step=10), None, NOW + 3600)
    later = received(body(100, current_step=20), ahead, NOW)
    assert progress.read(later.written("u"), "u").at > progress.read(ahead.written("u"), "u").at
    assert later.claimed_at == NOW


WRONG = {
    "no JSON": b"{",
    "no document": b"[]",
    "no status": b"{}",
    "not an object": b'{"trainerStatus": 3}',
    "percent": body(101),
    "part of a percent": body(0.5),
    "truth": body(True),
    "eta": body(1, -1),
    "300 metrics": body(**{f"m{n}": n for n in range(300)}),
    "long name": body(**{"m" * 65: 1}),
    "long value": body(m="1" * 65),
    "no value": b'{"trainerStatus": {"metrics": [{"name": "m"}]}}',
    "metrics": b'{"trainerStatus": {"metrics": {"m": 1}}}',
    "deep": b'{"trainerStatus":' + b"[" * 20_000,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_it_says_what_is_wrong(wrong):
    with pytest.raises(Unprocessable) as refused:
        received(wrong, None, NOW)
    assert len(str(refused.value)) < 200


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
METRIC = st.fixed_dictionaries(
    {"name": st.sampled_from([*progress._STEP, *progress._TOTAL, "loss"]), "value": st.text(max_size=20)}
)
STATUS = st.fixed_dictionaries(
    {},
    optional={"progressPercentage": VALUES, "estimatedRemainingSeconds": VALUES, "metrics": st.lists(METRIC) | VALUES},
)


@given(STATUS | VALUES)
def test_any_report_is_read_or_refused_and_fits_on_a_copy(status):
    try:
        read = received(json.dumps({"trainerStatus": status}).encode(), None, NOW)
    except Unprocessable:
        return
    assert progress.read(read.written("u" * 36), "u" * 36) == read


@given(
    st.dictionaries(
        st.sampled_from(["uid", "at", "step", "total", "percent", "eta", "loss", "world", "saved", "claimed"]), VALUES
    )
    | VALUES
)
def test_any_annotation_is_read_within_bounds(record):
    read = progress.read(json.dumps(record), "u")
    assert read is None or (
        isinstance(read, Progress)
        and all(
            value is None or abs(value) < 2**53 or name == "loss"
            for name, value in {"step": read.step, "total": read.total, "eta": read.eta_s}.items()
        )
    )
