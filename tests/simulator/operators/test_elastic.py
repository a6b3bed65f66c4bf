"""TrainingJobs: who waits for whom, who is replaced, what ends the job."""

from typing import Any

from simulator.operators.elastic import Horovod
from tests.simulator.operators.play import TEMPLATE, Play

HOROVOD = Horovod()


def horovod(**spec: Any) -> Play:
    roles = {"launcher": {"template": TEMPLATE}, "worker": {"replicas": 2, "template": TEMPLATE}}
    play = Play(HOROVOD, etReplicaSpecs=roles, **spec)
    play.step()
    return play


WORKERS = ("bert-worker-0", "bert-worker-1")


def test_the_launcher_starts_only_after_all_workers_are_ready() -> None:
    play = horovod()
    assert set(play.pods) == set(WORKERS) and play.phase == "Created"
    play.are("Running", WORKERS[0])
    assert "bert-launcher" not in play.pods
    play.are("Running", WORKERS[1])
    assert "bert-launcher" in play.pods
    play.are("Running", "bert-launcher")
    assert play.phase == "Running" and play.job["status"]["currentWorkers"] == 2


def test_a_lost_worker_is_replaced_and_the_job_goes_on() -> None:
    play = horovod()
    play.are("Running")
    play.are("Running")
    play.are("Failed", WORKERS[1], code=1)
    assert play.phase == "Scaling"
    play.step()
    play.are("Running")
    assert play.phase == "Running" and not play.job["status"].get("restartCount")


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
