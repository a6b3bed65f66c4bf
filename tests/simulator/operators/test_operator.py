"""RayJobs, JobSets, SparkApplications and Volcano Jobs: what is made when, what is tried again, what ends the job."""

import copy
from typing import Any

import pytest

from simulator.machinery.objects import labels_of, name_of
from simulator.operators.jobset import JobSets
from simulator.operators.ray import Ray
from simulator.operators.spark import Spark
from simulator.operators.volcano import Volcano
from tests.simulator.operators.play import TEMPLATE, Play


def ray(**spec: Any) -> Play:
    workers = [{"groupName": "gpus", "replicas": 2, "template": TEMPLATE}]
    play = Play(Ray(), rayClusterSpec={"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": workers}, **spec)
    play.step()
    return play


def jobset(**spec: Any) -> Play:
    template = {"spec": {"template": TEMPLATE}}
    groups = [{"name": "driver", "template": template}, {"name": "workers", "replicas": 2, "template": template}]
    play = Play(JobSets(), replicatedJobs=copy.deepcopy(groups), **spec)
    play.step()
    return play


def spark(**spec: Any) -> Play:
    play = Play(Spark(), type="Python", image="i", driver={"memory": "1g"}, executor={"instances": 2}, **spec)
    play.step()
    return play


def volcano(**spec: Any) -> Play:
    tasks = [{"name": "ps", "template": TEMPLATE}, {"name": "worker", "replicas": 2, "template": TEMPLATE}]
    play = Play(Volcano(), tasks=tasks, **spec)
    play.step()
    return play


def let_in(play: Play) -> Play:
    assert play.group is not None
    play.group["status"] = {"phase": "Inqueue"}
    play.step()
    return play


def deployed(play: Play) -> tuple[str, str]:
    return play.job["status"]["jobDeploymentStatus"], play.job["status"].get("jobStatus", "")


def truths(play: Play) -> list[str]:
    return [c["type"] for c in play.job["status"].get("conditions", []) if c["status"] == "True"]


def spark_state(play: Play) -> str:
    return str(play.job["status"]["applicationState"]["state"])


def volcano_state(play: Play) -> str:
    return str(play.job["status"]["state"]["phase"])


def test_a_ray_job_submits_its_program_when_the_whole_cluster_runs() -> None:
    play = ray()
    assert len(play.pods) == 3 and not play.jobs and deployed(play) == ("Initializing", "PENDING")
    play.are("Running")
    assert set(play.jobs) == {"bert"}
    play.running = {"bert": 1}
    play.step()
    assert deployed(play) == ("Running", "RUNNING")


def test_a_ray_job_gives_up_its_cluster_at_the_end_when_it_says_so() -> None:
    for gives_up, left in ((True, 0), (False, 3)):
        play = ray(shutdownAfterJobFinishes=gives_up)
        play.are("Running")
        play.end("Complete")
        assert deployed(play) == ("Complete", "SUCCEEDED")
        play.step()
        assert len(play.pods) == left


def test_a_ray_job_tries_again_on_a_new_cluster_as_often_as_it_may() -> None:
    play = ray(backoffLimit=1)
    first = set(play.pods)
    play.are("Running")
    play.end("Failed")
    assert deployed(play)[0] == "Retrying" and not play.pods
    play.step()
    assert not first & set(play.pods) and len(play.pods) == 3
    play.are("Running")
    play.end("Failed")
    assert deployed(play) == ("Failed", "FAILED")


def test_a_suspended_ray_job_has_no_cluster_until_it_is_resumed() -> None:
    play = ray()
    play.job["spec"]["suspend"] = True
    play.step()
    play.step()
    assert deployed(play)[0] == "Suspended" and not play.pods
    play.job["spec"]["suspend"] = False
    play.step()
    assert deployed(play)[0] == "Initializing" and len(play.pods) == 3


def test_a_job_set_makes_a_job_for_each_replica_and_numbers_them() -> None:
    play = jobset()
    assert list(play.jobs) == ["bert-driver-0", "bert-workers-0", "bert-workers-1"]
    labels = labels_of(play.jobs["bert-workers-1"])
    told = [labels[f"jobset.sigs.k8s.io/{key}"] for key in ("replicatedjob-name", "job-index", "job-global-index")]
    assert told == ["workers", "1", "2"]


@pytest.mark.parametrize(
    ("policy", "done", "ended"),
    [
        ({}, ["bert-driver-0"], False),
        ({}, ["bert-driver-0", "bert-workers-0", "bert-workers-1"], True),
        ({"operator": "Any", "targetReplicatedJobs": ["workers"]}, ["bert-workers-1"], True),
        ({"operator": "All", "targetReplicatedJobs": ["driver"]}, ["bert-driver-0"], True),
    ],
)
def test_a_job_set_succeeds_as_its_policy_has_it(policy: dict, done: list[str], ended: bool) -> None:
    play = jobset(successPolicy=policy)
    play.end("Complete", *done)
    assert ("Completed" in truths(play)) is ended


def test_a_job_set_starts_over_whole_as_often_as_it_may() -> None:
    play = jobset(failurePolicy={"maxRestarts": 1})
    play.end("Failed", "bert-workers-0")
    assert not play.jobs and play.job["status"]["restarts"] == 1
    play.step()
    assert len(play.jobs) == 3 and labels_of(play.jobs["bert-driver-0"])["jobset.sigs.k8s.io/restart-attempt"] == "1"
    play.end("Failed", "bert-workers-0")
    assert truths(play) == ["Failed"] and play.job["status"]["terminalState"] == "Failed"


def test_a_suspended_job_set_has_no_jobs() -> None:
    play = jobset(suspend=True)
    assert not play.jobs and truths(play) == ["Suspended"]
    play.job["spec"]["suspend"] = False
    play.step()
    assert len(play.jobs) == 3 and truths(play) == []


def test_spark_executors_come_with_the_driver_and_go_with_it() -> None:
    play = spark()
    assert set(play.pods) == {"bert-driver"} and spark_state(play) == "SUBMITTED"
    play.are("Running")
    assert len(play.pods) == 3 and spark_state(play) == "RUNNING"
    play.are("Succeeded", "bert-driver")
    assert spark_state(play) == "COMPLETED"
    play.step()
    assert set(play.pods) == {"bert-driver"}


def test_spark_asks_for_memory_outside_the_heap() -> None:
    asked = spark().pods["bert-driver"]["spec"]["containers"][0]["resources"]["requests"]
    assert asked == {"cpu": "1", "memory": str(2**30 + 429496730)}


def test_spark_tries_again_as_its_restart_policy_has_it() -> None:
    play = spark(restartPolicy={"type": "OnFailure", "onFailureRetries": 1})
    play.are("Failed", "bert-driver", code=3)
    assert spark_state(play) == "PENDING_RERUN"
    play.step()
    play.are("Failed", "bert-driver", code=3)
    assert spark_state(play) == "FAILED"
    assert play.job["status"]["applicationState"]["errorMessage"] == "driver container failed with ExitCode: 3"


def test_volcano_makes_no_pods_before_its_group_is_let_in() -> None:
    play = volcano()
    assert not play.pods and play.group is not None and play.group["spec"]["minMember"] == 3
    assert set(let_in(play).pods) == {"bert-ps-0", "bert-worker-0", "bert-worker-1"}
    pod = play.pods["bert-worker-1"]
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == name_of(play.group)
    env = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert (env["VC_TASK_INDEX"], env["VC_WORKER_NUM"], env["VC_PS_HOSTS"]) == ("1", "2", "bert-ps-0.bert")


def test_volcano_runs_with_enough_pods_and_completes_with_all() -> None:
    play = let_in(volcano(minAvailable=2))
    play.are("Running", "bert-ps-0")
    assert volcano_state(play) == "Pending"
    play.are("Running", "bert-worker-0")
    assert volcano_state(play) == "Running"
    play.are("Succeeded")
    assert volcano_state(play) == "Completed"


def test_volcano_does_what_a_policy_asks_for_at_an_event() -> None:
    play = let_in(volcano(policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=1))
    play.are("Running")
    play.are("Failed", "bert-worker-0", code=1)
    assert volcano_state(play) == "Restarting"
    for _ in range(3):
        play.step()
    play.are("Failed", "bert-worker-0", code=1)
    assert volcano_state(play) == "Failed" and play.job["status"]["retryCount"] == 1


def test_volcano_completes_when_a_task_that_decides_is_done() -> None:
    play = volcano()
    play.job["spec"]["tasks"][1]["policies"] = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    let_in(play).are("Running")
    play.are("Succeeded", "bert-worker-0", "bert-worker-1")
    play.step()
    play.step()
    assert volcano_state(play) == "Completed"


def test_volcano_aborts_on_command() -> None:
    play = let_in(volcano())
    play.are("Running")
    play.aborted = True
    play.step()
    play.step()
    assert volcano_state(play) == "Aborted" and not play.pods
