"""ElasticJobs by the rules of DLRover 0.6.1: the phase is the master's, the workers are the master's, suspend stops nothing."""

from typing import Any

import pytest

from simulator.machinery.objects import annotations_of, labels_of
from simulator.operators.dlrover import DlRover
from tests.simulator.operators.play import TEMPLATE, Play

DLROVER = DlRover()
MASTER, NEXT_MASTER = "elasticjob-bert-dlrover-master-0", "elasticjob-bert-dlrover-master-1"
RANKS = ("bert-edljob-worker-0", "bert-edljob-worker-1")
PREFIX = "elasticjob.dlrover/"


def play(
    *, master: dict | None = None, suspend: bool = False, strategy: str = "AllreduceStrategy", **worker: Any
) -> Play:
    roles = {"worker": {"replicas": 2, "template": TEMPLATE, **worker}}
    if master is not None:
        roles["dlrover-master"] = {"template": TEMPLATE, **master}
    made = Play(DLROVER, replicaSpecs=roles, suspend=suspend, distributionStrategy=strategy)
    made.step()
    return made


def running(**worker: Any) -> Play:
    made = play(**worker)
    made.are("Running", MASTER)
    made.are("Running")
    return made


def counts(made: Play, role: str = "worker") -> dict:
    return made.job["status"]["status"]["replicaStatuses"][role]


def test_the_phase_is_created_pending_and_running_with_the_master_whatever_the_workers_do() -> None:
    made = play()
    assert (set(made.pods), made.phase) == ({MASTER}, "Created")
    made.step()
    assert made.phase == "Pending"
    made.are("Running", MASTER)
    assert made.phase == "Running" and set(made.pods) == {MASTER, *RANKS}
    assert set(made.job["status"]["status"]["replicaStatuses"]) == {"dlrover-master"}
    made.are("Running")
    assert made.phase == "Running" and counts(made)["active"] == 2


def test_the_default_master_is_the_operators_with_the_address_of_its_pod() -> None:
    made = play()
    [container] = made.pods[MASTER]["spec"]["containers"]
    assert container["command"][-1].startswith("python -m dlrover.python.master.main --platform pyk8s --namespace ai")
    assert container["env"] == [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
    ]


def test_a_worker_has_the_labels_and_the_environment_that_the_stock_master_gives() -> None:
    made = running()
    labels = labels_of(made.pods[RANKS[1]])
    keys = ("name", "replica-type", "replica-index", "rank-index", "relaunch-count")
    assert (labels["app"], *(labels[PREFIX + key] for key in keys)) == ("dlrover", "bert", "worker", "1", "1", "0")
    env = {each["name"]: each.get("value") for each in made.pods[RANKS[1]]["spec"]["containers"][0]["env"]}
    asked = ("NODE_ID", "NODE_RANK", "NODE_NUM", "RANK", "WORLD_SIZE", "DLROVER_MASTER_ADDR", "MONITOR_ENABLED")
    assert [env[key] for key in asked] == ["1", "1", "2", "1", "2", "elasticjob-bert-dlrover-master:50001", "true"]
    assert "controller" not in made.pods[RANKS[1]]["metadata"]["ownerReferences"][0]


def test_the_stock_master_drops_grace_priority_class_and_hooks_and_limits_are_what_is_requested() -> None:
    container = {
        "name": "x",
        "image": "i",
        "lifecycle": {"preStop": {}},
        "resources": {"limits": {"cpu": "4", "gpu": 1}},
    }
    spec = {"terminationGracePeriodSeconds": 90, "priorityClassName": "high", "containers": [container]}
    made = running(template={"spec": spec})
    sent = made.pods[RANKS[0]]["spec"]
    assert set(sent) == {"restartPolicy", "containers"} and "lifecycle" not in sent["containers"][0]
    assert sent["containers"][0]["resources"] == {
        "requests": {"cpu": "0", "memory": "0Mi"},
        "limits": {"cpu": "0", "memory": "0Mi", "gpu": 1},
    }


def test_a_replaced_rank_keeps_its_rank_under_a_new_id() -> None:
    made = running()
    made.are("Failed", RANKS[1], code=137)
    labels = labels_of(made.pods["bert-edljob-worker-2"])
    assert [labels[PREFIX + key] for key in ("replica-index", "rank-index", "relaunch-count")] == ["2", "1", "1"]


def test_a_deleted_pod_comes_back_under_an_id_that_was_never_used() -> None:
    made = running()
    del made.pods[RANKS[1]]
    made.step()
    assert set(made.pods) == {MASTER, RANKS[0], "bert-edljob-worker-2"}
    del made.pods["bert-edljob-worker-2"]
    made.step()
    assert labels_of(made.pods["bert-edljob-worker-3"])[f"{PREFIX}relaunch-count"] == "2"


def test_a_worker_that_always_fails_ends_the_job_with_its_third_pod_and_the_masters_exit_1() -> None:
    made = play(replicas=1, restartCount=3)
    made.are("Running", MASTER)
    for number in range(3):
        assert made.phase == "Running"
        made.are("Running", f"bert-edljob-worker-{number}")
        made.are("Failed", f"bert-edljob-worker-{number}", code=1)
    made.step()
    assert made.phase == "Failed" and "CodeError" in annotations_of(made.pods[MASTER])["convoy.dev/end"]
    assert [name for name in made.pods if name != MASTER] == [f"bert-edljob-worker-{number}" for number in range(3)]


def test_killed_pods_use_up_no_budget() -> None:
    made = play(replicas=1, restartCount=9)
    made.are("Running", MASTER)
    for number in range(4):
        made.are("Failed", f"bert-edljob-worker-{number}", code=143)
    assert made.phase == "Running" and "bert-edljob-worker-4" in made.pods


def test_the_budget_of_a_rank_is_five_at_most() -> None:
    made = play(replicas=1, restartCount=9)
    made.are("Running", MASTER)
    for number in range(5):
        made.are("Failed", f"bert-edljob-worker-{number}", code=1)
    made.step()
    assert made.phase == "Failed"


@pytest.mark.parametrize(("strategy", "code"), [("AllreduceStrategy", 247), ("ParameterServerStrategy", 1)])
def test_what_the_strategy_does_not_replace_is_not_replaced(strategy: str, code: int) -> None:
    made = play(strategy=strategy)
    made.are("Running", MASTER)
    made.are("Running")
    made.are("Failed", RANKS[1], code=code)
    assert set(made.pods) == {MASTER, *RANKS}
    made.step()
    assert made.phase == ("Running" if strategy == "AllreduceStrategy" else "Failed")


def test_the_job_succeeds_when_its_master_does() -> None:
    made = running()
    made.are("Succeeded", RANKS[0])
    assert made.phase == "Running"
    made.are("Succeeded", RANKS[1])
    made.step()
    assert made.phase == "Succeeded"


def test_the_agents_of_a_failed_job_give_up() -> None:
    made = running()
    made.are("Failed", MASTER, code=1)
    assert made.phase == "Failed"
    made.step()
    assert {made.pods[name]["status"]["phase"] for name in RANKS} == {"Failed"}


def test_suspend_stops_nothing_that_runs_and_only_keeps_new_pods_from_being_made() -> None:
    made = running()
    made.job["spec"]["suspend"] = True
    made.step()
    assert made.phase == "Running" and set(made.pods) == {MASTER, *RANKS}
    del made.pods[RANKS[1]]
    made.step()
    assert set(made.pods) == {MASTER, RANKS[0]}
    made.job["spec"]["suspend"] = False
    made.step()
    assert "bert-edljob-worker-2" in made.pods


def test_a_job_created_suspended_has_a_master_and_no_worker_until_it_is_released() -> None:
    made = play(suspend=True)
    assert (set(made.pods), made.phase) == ({MASTER}, "Suspended")
    made.are("Running", MASTER)
    assert (set(made.pods), made.phase) == ({MASTER}, "Suspended")
    made.job["spec"]["suspend"] = False
    made.step()
    assert (set(made.pods), made.phase) == ({MASTER, *RANKS}, "Running")


def test_a_master_that_is_lost_fails_the_job_unless_it_may_be_made_again() -> None:
    made = running()
    made.are("Failed", MASTER, code=137)
    assert made.phase == "Failed"
    made = running(master={"restartCount": 1})
    made.are("Failed", MASTER, code=137)
    assert made.phase == "Running" and NEXT_MASTER in made.pods
    made.are("Running", NEXT_MASTER)
    assert set(made.pods) == {MASTER, NEXT_MASTER, *RANKS}
    del made.pods[NEXT_MASTER], made.pods[MASTER]
    made.step()
    assert made.phase == "Failed"


def test_the_number_of_ranks_is_read_once_when_the_master_starts() -> None:
    made = running()
    for replicas in (1, 3):
        made.job["spec"]["replicaSpecs"]["worker"]["replicas"] = replicas
        made.step()
        assert set(made.pods) == {MASTER, *RANKS}


def test_a_master_that_is_a_real_process_makes_the_workers_itself() -> None:
    template = {**TEMPLATE, "metadata": {"annotations": {"convoy.dev/run": "process"}}}
    made = play(master={"template": template})
    made.are("Running", MASTER)
    assert (set(made.pods), made.phase) == ({MASTER}, "Running")
    made.are("Succeeded", MASTER)
    assert made.phase == "Succeeded"
