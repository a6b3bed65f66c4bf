"""A training that is pretended: as fast as its workers are many, and what is lost when one leaves with or without notice."""

import pytest

from simulator.machinery.clock import WallClock
from simulator.node import trainlog
from simulator.node.training import Pace, Training
from simulator.node.trainings import Trainings, pace_of

PACE = Pace(step_s=1.0, checkpoint_s=60.0, restart_s=10.0, save_s=2.0, steps=0)


def of_four(pace: Pace = PACE) -> Training:
    training = Training(pace)
    for index in range(4):
        training.join(f"w{index}", 1000.0)
    return training


def test_it_is_as_fast_as_it_has_workers_and_all_of_them_start_again_when_one_leaves():
    training = of_four()
    assert (training.step_at(1000.0), training.step_at(1025.0)) == (0, 100)
    training.leave("w3", 1025.0, saved=True)
    assert (training.saved, training.step_at(1035.0), training.step_at(1045.0)) == (100, 100, 130)
    training.join("w3", 1045.0)
    assert (training.step_at(1055.0), training.step_at(1065.0), training.step_at(1025.0)) == (130, 170, 100)


def test_what_it_did_since_its_last_checkpoint_is_lost_with_a_worker_that_was_not_asked():
    training = of_four()
    assert training.checkpoint(1125.0) == 1180.0
    training.leave("w0", 1150.0, saved=False)
    assert training.saved == training.step_at(1150.0) == 480
    assert training.step_at(1149.0) == 596
    without = of_four(Pace(1.0, 0.0, 10.0, 2.0, 0))
    without.leave("w0", 1150.0, saved=False)
    assert without.step_at(1150.0) == 0


def test_it_is_complete_after_its_steps_and_then_nothing_is_lost():
    training = of_four(Pace(1.0, 0.0, 10.0, 2.0, 100))
    assert (training.ends_at(), training.is_complete(1024.0), training.step_at(1099.0)) == (1025.0, False, 100)
    training.leave("w0", 1025.0, saved=False)
    assert training.is_complete(1025.0) and training.ends_at() == 1025.0 and training.marks == []


def test_a_restart_that_is_interrupted_begins_anew():
    training = of_four()
    training.leave("w3", 1025.0, saved=True)
    training.leave("w2", 1030.0, saved=True)
    assert (training.step_at(1040.0), training.step_at(1050.0)) == (100, 120)
    training.leave("w2", 1050.0, saved=True)
    assert training.step_at(1060.0) == 140


def test_its_log_grows_only_at_its_end():
    training = of_four()
    before = list(trainlog.of_training(training, "w0", started=1000.0, until=1020.0, step_real_s=5.0))
    training.leave("w3", 1021.0, saved=True)
    after = list(trainlog.of_training(training, "w0", started=1000.0, until=1041.0, step_real_s=5.0))
    assert after[: len(before)] == before
    assert "w3 saved step 84 and left: 3 workers go on from step 84" in after[len(before)]
    assert after[-1].endswith("workers=3") and "step=111 " in after[-1]


@pytest.mark.parametrize(
    "notes",
    [{"step-seconds": "0"}, {"step-seconds": "fast"}, {"steps": "many"}, {"steps": "-1"}, {"restart-seconds": "-3"}],
)
def test_it_says_which_annotation_is_wrong(notes):
    annotations = {f"convoy.dev/{name}": value for name, value in {"step-seconds": "1", **notes}.items()}
    with pytest.raises(ValueError, match=f"convoy.dev/{[*notes][0]}"):
        pace_of({"metadata": {"annotations": annotations}}, WallClock())


def test_another_member_goes_on_from_the_checkpoint(tmp_path):
    meta = {"namespace": "default", "name": "llama-worker-0", "annotations": {"convoy.dev/step-seconds": "2"}}
    pod = {"metadata": {**meta, "uid": "u1", "labels": {"convoy.dev/job-uid": "11111111-1111-1111-1111-111111111111"}}}
    north, south = (Trainings(tmp_path / name, WallClock(10)) for name in ("north", "south"))
    assert north.join(pod, 1000.0) == ["default/llama-worker-0"]
    assert north.leave(pod, 1010.0, saved=True) == []
    assert north.leave(pod, 1020.0, saved=False) == []
    again = {"metadata": {**pod["metadata"], "uid": "u2"}}
    south.join(again, 2000.0)
    assert south.step(again, 2000.0) == 50
    hostile = {"metadata": {**pod["metadata"], "uid": "u3", "labels": {"convoy.dev/job-uid": "../../etc"}}}
    assert south.join(hostile, 2000.0) and south.step(hostile, 2001.0) == 5
