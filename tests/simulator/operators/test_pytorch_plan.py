"""The training operator's decisions: conditions, replacements, limits, suspension, cleaning up."""

import pytest

from simulator.operators.kubeflow.plan import Decision, decide, is_ours
from tests.simulator.operators.operator_cases import NOW, PYTORCH, pods_of, pytorch_job, settled, times, truths

ALL = {"master_0": "Running", "worker_0": "Running", "worker_1": "Running"}


def test_it_creates_every_pod_of_a_new_job() -> None:
    decision = decide(PYTORCH, pytorch_job(), [], times(started=None))
    assert decision.create == [("Master", 0), ("Worker", 0), ("Worker", 1)]
    assert decision.status["startTime"] == "2023-11-14T22:13:20Z"
    assert decision.status["replicaStatuses"] == {"Master": {}, "Worker": {}}
    assert [c["reason"] for c in decision.status["conditions"]] == ["PyTorchJobCreated"]


def test_it_runs_when_the_master_runs() -> None:
    job = pytorch_job()
    waiting = settled(job, *pods_of(job, master_0="Pending", worker_0="Running", worker_1="Pending"))
    assert truths(waiting) == ["Created"]
    assert truths(settled(waiting, *pods_of(job, **ALL))) == ["Created", "Running"]


def test_it_succeeds_with_the_master_and_counts_the_others_as_succeeded() -> None:
    job = pytorch_job()
    job = settled(job, *pods_of(job, **ALL))
    done = settled(job, *pods_of(job, **{**ALL, "master_0": "Succeeded"}))
    assert truths(done) == ["Created", "Succeeded"]
    assert done["status"]["replicaStatuses"] == {"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}}
    assert done["status"]["completionTime"]


def test_it_succeeds_without_a_master_when_all_workers_did() -> None:
    job = pytorch_job(master=False)
    assert "Succeeded" not in truths(settled(job, *pods_of(job, worker_0="Succeeded", worker_1="Running")))
    assert "Succeeded" in truths(settled(job, *pods_of(job, worker_0="Succeeded", worker_1="Succeeded")))
    job["spec"]["elasticPolicy"] = {}
    assert "Succeeded" in truths(settled(job, *pods_of(job, worker_0="Succeeded", worker_1="Running")))


@pytest.mark.parametrize(
    ("restart", "phase", "outcome", "replaced"),
    [
        ("Never", "Failed:1", "Failed", []),
        ("OnFailure", "Failed:1", "Restarting", ["llama-worker-1"]),
        ("Always", "Failed:1", "Restarting", ["llama-worker-1"]),
        ("ExitCode", "Failed:127", "Failed", []),
        ("ExitCode", "Failed:128", "Restarting", ["llama-worker-1"]),
        ("ExitCode", "Failed:137", "Restarting", ["llama-worker-1"]),
    ],
)
def test_it_replaces_a_failed_pod_or_fails(restart: str, phase: str, outcome: str, replaced: list[str]) -> None:
    job = pytorch_job(restart=restart)
    decision = decide(PYTORCH, job, pods_of(job, **{**ALL, "worker_1": phase}), times())
    assert truths({"status": decision.status})[-1] == outcome
    assert decision.delete == replaced


def test_it_lets_running_and_restarting_replace_each_other() -> None:
    job = pytorch_job()
    job = settled(job, *pods_of(job, **ALL))
    job = settled(job, *pods_of(job, **{**ALL, "worker_1": "Failed:1"}))
    assert truths(job) == ["Created", "Restarting"]
    assert truths(settled(job, *pods_of(job, **ALL))) == ["Created", "Running"]


def test_it_writes_nothing_once_failed() -> None:
    job = pytorch_job(restart="Never")
    job = settled(job, *pods_of(job, **{**ALL, "worker_1": "Failed:1"}))
    later = decide(PYTORCH, job, pods_of(job, **ALL), times(NOW + 60))
    assert later.status == job["status"]
    assert later.create == []


def test_it_suspends_by_deleting_pods_and_stopping_the_clock() -> None:
    job = pytorch_job(activeDeadlineSeconds=10)
    job = settled(job, *pods_of(job, **ALL))
    job["spec"]["runPolicy"]["suspend"] = True
    decision = decide(PYTORCH, job, pods_of(job, **ALL), times(NOW + 60))
    assert decision.delete == decision.drop_services == ["llama-master-0", "llama-worker-0", "llama-worker-1"]
    assert truths({"status": decision.status}) == ["Created", "Suspended"]
    assert "startTime" not in decision.status


def test_it_resumes_with_a_fresh_clock() -> None:
    job = pytorch_job(suspend=True, activeDeadlineSeconds=10)
    job = settled(job, started=None)
    job["spec"]["runPolicy"]["suspend"] = False
    decision = decide(PYTORCH, job, [], times(NOW + 600, started=None))
    assert len(decision.create) == 3
    resumed = next(c for c in decision.status["conditions"] if c["type"] == "Suspended")
    assert (resumed["status"], resumed["reason"]) == ("False", "PyTorchJobResumed")
    assert decision.status["startTime"] == "2023-11-14T22:23:20Z"


def test_it_fails_at_the_deadline_and_removes_the_pods() -> None:
    job = pytorch_job(activeDeadlineSeconds=30)
    assert decide(PYTORCH, job, pods_of(job, **ALL), times(NOW + 29)).again_s == pytest.approx(1.0, abs=0.01)
    decision = decide(PYTORCH, job, pods_of(job, **ALL), times(NOW + 30))
    assert "Failed" in truths({"status": decision.status})
    assert len(decision.delete) == 3


def test_it_fails_when_containers_restarted_too_often() -> None:
    job = pytorch_job(backoffLimit=2)
    pods = pods_of(job, **ALL)
    pods[1]["status"]["containerStatuses"][0]["restartCount"] = 2
    assert "Failed" in truths(settled(job, *pods))


def test_it_fails_when_pods_were_replaced_too_often() -> None:
    job = pytorch_job(backoffLimit=1)
    pods = pods_of(job, **{**ALL, "worker_1": "Failed:1"})
    assert "Failed" not in truths(settled(job, *pods))
    assert "Failed" in truths(settled(job, *pods, replaced=1))


def finished(clean: str) -> Decision:
    job = pytorch_job(cleanPodPolicy=clean)
    pods = pods_of(job, **{**ALL, "master_0": "Succeeded"})
    return decide(PYTORCH, settled(job, *pods), pods, times())


@pytest.mark.parametrize(("clean", "deleted"), [("None", 0), ("Running", 2), ("All", 3)])
def test_it_cleans_up_as_the_policy_says(clean: str, deleted: int) -> None:
    decision = finished(clean)
    assert len(decision.delete) == len(decision.drop_services) == deleted


def test_it_deletes_the_job_when_its_time_to_live_is_over() -> None:
    job = pytorch_job(ttlSecondsAfterFinished=60)
    job = settled(job, *pods_of(job, **{**ALL, "master_0": "Succeeded"}))
    assert not decide(PYTORCH, job, [], times(NOW + 59, completed=NOW)).expired
    assert decide(PYTORCH, job, [], times(NOW + 60, completed=NOW)).expired


def test_it_removes_the_pods_of_a_role_that_shrank() -> None:
    job = pytorch_job(workers=1)
    assert decide(PYTORCH, job, pods_of(job, **ALL), times()).delete == ["llama-worker-1"]


def test_it_does_not_make_a_pod_that_is_still_leaving() -> None:
    job = pytorch_job()
    pods = pods_of(job, **ALL)
    pods[1]["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    decision = decide(PYTORCH, job, pods, times())
    assert (decision.create, decision.delete) == ([], [])
    assert "Restarting" in truths({"status": decision.status})


def test_it_leaves_a_job_of_another_manager_alone() -> None:
    assert not is_ours(pytorch_job(managedBy="kueue.x-k8s.io/multikueue"))
    assert is_ours(pytorch_job(managedBy="kubeflow.org/training-operator"))


def test_it_fails_a_job_that_can_never_run() -> None:
    job = pytorch_job(master=False, workers=0)
    assert truths(settled(job)) == ["Created", "Failed"]
