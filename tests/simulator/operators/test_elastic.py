"""TrainingJobs: who waits for whom, who is replaced, what ends the job."""

from typing import Any

from simulator.operators.elastic import Horovod, is_over
from tests.simulator.operators.operator_cases import NOW
from tests.simulator.operators.play import TEMPLATE, Play

HOROVOD = Horovod()


def horovod(replicas: int = 2, restarts: str = "", **spec: Any) -> Play:
    worker = {"replicas": replicas, "template": TEMPLATE, **({"restartPolicy": restarts} if restarts else {})}
    play = Play(HOROVOD, etReplicaSpecs={"launcher": {"template": TEMPLATE}, "worker": worker}, **spec)
    play.step()
    return play


def running(replicas: int = 2, **spec: Any) -> Play:
    play = horovod(replicas, **spec)
    play.are("Running")
    play.are("Running")
    assert play.phase == "Running"
    return play


def scaler(play: Play, kind: str, spec: dict, name: str = "x", at: str = "2026-07-28T12:00:00Z") -> dict:
    head = {"kind": kind, "metadata": {"name": name, "namespace": "ai", "creationTimestamp": at}}
    play.scalers.append({**head, "spec": {"selector": {"name": "bert"}, **spec}})
    return play.scalers[-1]


def workers(play: Play) -> list[str]:
    return sorted(name for name in play.pods if "worker" in name)


WORKERS = ("bert-worker-0", "bert-worker-1")


def test_the_launcher_starts_only_after_all_workers_are_ready() -> None:
    play = horovod()
    assert set(play.pods) == set(WORKERS) and play.phase == "Created"
    play.are("Running", WORKERS[0])
    assert "bert-launcher" not in play.pods
    play.are("Running", WORKERS[1])
    assert "bert-launcher" in play.pods
    play.are("Running", "bert-launcher")
    assert play.phase == "Running" and play.job["status"]["currentWorkers"] == list(WORKERS)


def test_a_lost_worker_that_may_restart_has_a_successor_of_a_new_index() -> None:
    play = running(restarts="OnFailure")
    play.are("Failed", WORKERS[1], code=1)
    assert "bert-worker-2" in play.pods and play.phase == "Running"
    play.are("Running", "bert-worker-2")
    assert play.job["status"]["targetWorkers"] == ["bert-worker-0", "bert-worker-2"]


def test_a_lost_worker_that_may_not_restart_is_missed_and_the_job_goes_on() -> None:
    play = running()
    play.are("Failed", WORKERS[1], code=1)
    assert "bert-worker-2" not in play.pods and play.phase == "Running"
    assert play.job["status"]["currentWorkers"] == ["bert-worker-0"]


def test_another_number_of_replicas_changes_nothing_while_it_runs() -> None:
    play = running()
    play.job["spec"]["etReplicaSpecs"]["worker"]["replicas"] = 4
    play.step()
    assert workers(play) == list(WORKERS)


def test_workers_are_added_by_a_scaleout_and_it_is_over_once_they_run() -> None:
    play = running()
    more = scaler(play, "ScaleOut", {"toAdd": {"count": 2}})
    play.step()
    assert play.phase == "Scaling" and workers(play)[2:] == ["bert-worker-2", "bert-worker-3"]
    assert play.job["status"]["currentScaler"] == "ScaleOut:ai/x"
    play.are("Running")
    assert play.phase == "Running" and is_over(more) and more["status"]["phase"] == "ScaleSucceeded"
    assert len(play.job["status"]["targetWorkers"]) == 4


def test_a_scaleout_whose_workers_do_not_run_in_time_takes_them_back() -> None:
    play = running()
    more = scaler(play, "ScaleOut", {"toAdd": {"count": 1}, "timeout": 30})
    play.step()
    assert play.pods["bert-worker-2"]["metadata"]["labels"]["scaleout-name"] == "x"
    play.step(NOW + 31)
    assert more["status"]["phase"] == "ScaleFailed" and workers(play) == list(WORKERS)


def test_a_scalein_takes_the_last_workers_or_those_it_names() -> None:
    play = running(4)
    scaler(play, "ScaleIn", {"toDelete": {"count": 1}}, "last")
    play.step()
    play.step()
    assert workers(play) == ["bert-worker-0", "bert-worker-1", "bert-worker-2"]
    named = scaler(play, "ScaleIn", {"toDelete": {"podNames": ["bert-worker-0"]}}, "named")
    play.step()
    play.step()
    assert workers(play) == ["bert-worker-1", "bert-worker-2"] == play.job["status"]["targetWorkers"]
    assert is_over(named) and play.phase == "Running"


def test_a_scalein_of_all_workers_fails() -> None:
    play = running()
    less = scaler(play, "ScaleIn", {"toDelete": {"count": 2}})
    play.step()
    assert less["status"]["phase"] == "ScaleFailed" and workers(play) == list(WORKERS)


def test_of_two_scalers_the_one_that_was_made_last_comes_first() -> None:
    play = running()
    first = scaler(play, "ScaleOut", {"toAdd": {"count": 1}}, "first", "2026-07-28T12:00:00Z")
    second = scaler(play, "ScaleOut", {"toAdd": {"count": 1}}, "second", "2026-07-28T12:00:01Z")
    play.step()
    assert "status" in second and "status" not in first
    for _ in range(3):
        play.are("Running")
    assert is_over(first) and is_over(second) and len(workers(play)) == 4


def test_a_job_that_may_restart_starts_over_as_often_as_it_may() -> None:
    play = horovod(restartPolicy="OnFailure", backoffLimit=1)
    for expected in ("Restarting", "Failed"):
        play.step()
        play.are("Running", *WORKERS)
        play.are("Running")
        play.are("Failed", "bert-launcher", code=1)
        assert play.phase == expected
    assert play.job["status"]["restartCount"] == 1


def test_a_suspended_training_job_never_comes_back() -> None:
    play = horovod()
    play.job["metadata"]["annotations"] = {"scheduling.x-k8s.io/suspend": "true"}
    play.step()
    assert play.phase == "Suspended" and not play.pods
    play.job["metadata"]["annotations"] = {}
    play.step()
    assert play.phase == "Suspended" and not play.pods
