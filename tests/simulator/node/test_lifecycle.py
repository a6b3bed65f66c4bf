"""What annotations mean, and the status documents of a pod's life."""

import pytest

from simulator.machinery.objects import exit_code, is_true, restarts_of
from simulator.node import lifecycle

NOW = 1_700_000_000.0


def pod(owner: str = "", **annotations: str) -> dict:
    notes = {f"convoy.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    owners = [{"kind": owner, "uid": "u", "controller": True}] if owner else []
    meta = {"name": "p", "annotations": notes, "ownerReferences": owners}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("1h30m", 5400), ("1.5", 1.5), ("0s", 0)])
def test_it_reads_durations(text: str, value: float) -> None:
    assert lifecycle.seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "-1s", "3d"])
def test_it_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        lifecycle.seconds(text)


def test_it_runs_a_job_ten_minutes_and_a_server_for_ever() -> None:
    assert lifecycle.behaviour(pod("PyTorchJob")).duration_s == 600
    assert lifecycle.behaviour(pod("ReplicaSet")).duration_s is None
    assert lifecycle.behaviour(pod("Job", duration="5s")).duration_s == 5


def test_it_fails_so_many_times_and_then_succeeds() -> None:
    behaviour = lifecycle.behaviour(pod(exit_code="3", exit_code_times="2"))
    assert [behaviour.code_of_run(n) for n in range(4)] == [3, 3, 0, 0]


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Never", 1, False), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Always", 0, True)],
)
def test_it_restarts_as_the_policy_says(policy: str, code: int, again: bool) -> None:
    assert lifecycle.restarts(policy, code) is again


def test_it_backs_off_longer_each_time_and_forgets_after_a_long_run() -> None:
    assert [lifecycle.backoff_s(n, 1.0) for n in (0, 1, 2, 3, 20)] == [0, 10, 20, 40, 300]
    assert lifecycle.backoff_s(9, 600.0) == 0


def test_it_tells_of_a_running_and_a_finished_pod() -> None:
    here = pod()
    here["status"] = lifecycle.running(here, now=NOW, where=lifecycle.Addresses("10.1.0.1", "h"), restart=2, extra={})
    assert is_true(here, "Ready")
    assert (here["status"]["startTime"], restarts_of(here)) == ("2023-11-14T22:13:20Z", 2)
    ended = lifecycle.ended_state(code=7, reason="", started=NOW, now=NOW + 5)
    here["status"] |= lifecycle.finished(here, now=NOW + 5, restart=2, ended=ended)
    assert (here["status"]["phase"], exit_code(here), here["status"]["podIP"]) == ("Failed", 7, "10.1.0.1")
    assert not is_true(here, "Ready")
    assert here["status"]["startTime"] == "2023-11-14T22:13:20Z"
