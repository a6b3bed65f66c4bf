"""Elastic kinds: who waits for whom, who is replaced, what ends the job."""

from typing import Any

from fleet.simulator.controllers.objects import labels_of
from fleet.simulator.controllers.trade_elastic import DlRover, Horovod
from tests.simulator.controllers.play import TEMPLATE, Play

HOROVOD, DLROVER = Horovod(), DlRover()


def horovod(**spec: Any) -> Play:
    roles = {"launcher": {"template": TEMPLATE}, "worker": {"replicas": 2, "template": TEMPLATE}}
    play = Play(HOROVOD, etReplicaSpecs=roles, **spec)
    play.step()
    return play


def dlrover(**worker: Any) -> Play:
    play = Play(DLROVER, replicaSpecs={"worker": {"replicas": 2, "template": TEMPLATE, **worker}})
    play.step()
    return play


WORKERS = ("bert-worker-0", "bert-worker-1")
MASTER = "elasticjob-bert-dlrover-master-0"
RANKS = ("bert-edljob-worker-0", "bert-edljob-worker-1")


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


def test_the_master_comes_first_and_makes_the_ranks() -> None:
    play = dlrover()
    assert set(play.pods) == {MASTER} and play.phase == "Pending" or play.phase == "Created"
    play.are("Running", MASTER)
    assert set(play.pods) == {MASTER, *RANKS}
    play.are("Running")
    assert play.phase == "Running"
    assert play.job["status"]["status"]["replicaStatuses"]["worker"]["active"] == 2


def test_a_replaced_rank_keeps_its_rank_and_gets_a_new_id() -> None:
    play = dlrover()
    play.are("Running")
    play.are("Running")
    play.are("Failed", RANKS[1], code=1)
    labels = labels_of(play.pods["bert-edljob-worker-2"])
    prefix = "elasticjob.dlrover/"
    told = [labels[f"{prefix}{key}"] for key in ("replica-index", "rank-index", "relaunch-count")]
    assert told == ["2", "1", "1"]


def test_a_rank_fails_the_job_after_its_budget_which_killed_pods_do_not_use() -> None:
    play = dlrover(restartCount=1)
    play.are("Running")
    play.are("Running")
    play.are("Failed", RANKS[1], code=137)
    play.are("Failed", "bert-edljob-worker-2", code=1)
    assert play.phase != "Failed"
    play.are("Failed", "bert-edljob-worker-3", code=1)
    assert play.phase == "Failed"


def test_the_job_ends_with_its_ranks_and_then_its_master_goes() -> None:
    play = dlrover()
    play.are("Running")
    play.are("Running")
    play.are("Succeeded", *RANKS)
    assert play.phase == "Succeeded"
    play.step()
    assert set(play.pods) == set(RANKS)


def test_a_suspended_elastic_job_keeps_its_master_and_comes_back() -> None:
    play = dlrover()
    play.are("Running")
    play.are("Running")
    play.job["spec"]["suspend"] = True
    play.step()
    assert play.phase == "Suspended" and set(play.pods) == {MASTER}
    play.job["spec"]["suspend"] = False
    play.step()
    assert set(play.pods) == {MASTER, *RANKS}


def test_workers_come_and_go_with_the_number_asked_for() -> None:
    play = dlrover()
    play.are("Running")
    play.are("Running")
    play.job["spec"]["replicaSpecs"]["worker"]["replicas"] = 1
    play.step()
    assert set(play.pods) == {MASTER, RANKS[0]}
    play.job["spec"]["replicaSpecs"]["worker"]["replicas"] = 3
    play.step()
    assert len(play.pods) == 4
