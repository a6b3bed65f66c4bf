"""What TFJobs and MPIJobs have of their own: who ends them, who waits for whom, what pods are told."""

import json
from typing import Any

import pytest

from simulator.operators.kubeflow.mpi import MpiV1, MpiV2
from simulator.operators.kubeflow.plan import decide
from simulator.operators.kubeflow.pods import KubeflowKind, pod_of
from tests.simulator.operators.operator_cases import TENSORFLOW, pods_of, settled, times, truths

V1, V2 = MpiV1(), MpiV2()


def job_of(kubeflow_kind: KubeflowKind, container: str = "tensorflow", **roles: int) -> dict:
    template = {"spec": {"containers": [{"name": container, "image": "i"}]}}
    given = {role: {"replicas": count, "template": template} for role, count in roles.items()}
    return {"metadata": {"name": "mnist", "namespace": "ai", "uid": "u1"}, "spec": {kubeflow_kind.key: given}}


def tf_job(**fields: Any) -> dict:
    job = job_of(TENSORFLOW, Ps=1, Worker=2)
    job["spec"].update(fields)
    return job


def env_of(kubeflow_kind: KubeflowKind, job: dict, role: str, index: int = 0) -> dict[str, str]:
    return {e["name"]: e["value"] for e in pod_of(kubeflow_kind, job, role, index)["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize(
    ("policy", "phases", "ended"),
    [
        ("", {"worker_0": "Succeeded", "worker_1": "Running"}, True),
        ("", {"worker_0": "Running", "worker_1": "Succeeded"}, False),
        ("AllWorkers", {"worker_0": "Succeeded", "worker_1": "Running"}, False),
        ("AllWorkers", {"worker_0": "Succeeded", "worker_1": "Succeeded"}, True),
    ],
)
def test_a_tfjob_without_a_chief_ends_with_its_first_worker_or_all(
    policy: str, phases: dict[str, str], ended: bool
) -> None:
    job = tf_job(successPolicy=policy)
    done = settled(job, *pods_of(job, TENSORFLOW, ps_0="Running", **phases), kubeflow_kind=TENSORFLOW)
    assert ("Succeeded" in truths(done)) is ended


def test_a_tfjob_ends_with_its_chief() -> None:
    job = job_of(TENSORFLOW, Chief=1, Worker=1)
    running = settled(job, *pods_of(job, TENSORFLOW, chief_0="Running", worker_0="Succeeded"), kubeflow_kind=TENSORFLOW)
    assert truths(running) == ["Created", "Running"]
    ended = settled(job, *pods_of(job, TENSORFLOW, chief_0="Succeeded", worker_0="Running"), kubeflow_kind=TENSORFLOW)
    assert truths(ended) == ["Created", "Succeeded"]


def test_a_failed_replica_fails_a_tfjob_but_not_one_of_dynamic_workers() -> None:
    phases = {"ps_0": "Running", "worker_0": "Running", "worker_1": "Failed:1"}
    job = tf_job()
    assert "Failed" in truths(settled(job, *pods_of(job, TENSORFLOW, **phases), kubeflow_kind=TENSORFLOW))
    job = tf_job(enableDynamicWorker=True)
    assert "Running" in truths(settled(job, *pods_of(job, TENSORFLOW, **phases), kubeflow_kind=TENSORFLOW))


def test_it_tells_each_pod_of_a_tfjob_where_all_are() -> None:
    told = json.loads(env_of(TENSORFLOW, tf_job(), "Worker", 1)["TF_CONFIG"])
    assert told["task"] == {"type": "worker", "index": 1} and told["environment"] == "cloud"
    assert told["cluster"]["ps"] == ["mnist-ps-0.ai.svc:2222"] and len(told["cluster"]["worker"]) == 2
    sparse = json.loads(env_of(TENSORFLOW, tf_job(enableDynamicWorker=True), "Worker", 1)["TF_CONFIG"])
    assert sparse["cluster"]["worker"] == {"1": "mnist-worker-1.ai.svc:2222"}
    assert env_of(TENSORFLOW, job_of(TENSORFLOW, Worker=1), "Worker") == {}


def test_an_mpijob_runs_when_its_launcher_and_all_workers_do() -> None:
    job = job_of(V1, Launcher=1, Worker=2)
    half = {"launcher_0": "Running", "worker_0": "Running", "worker_1": "Pending"}
    assert truths(settled(job, *pods_of(job, V1, **half), kubeflow_kind=V1)) == ["Created"]
    whole = settled(job, *pods_of(job, V1, **{**half, "worker_1": "Running"}), kubeflow_kind=V1)
    assert truths(whole) == ["Created", "Running"]
    assert whole["status"]["replicaStatuses"] == {"Launcher": {"active": 1}, "Worker": {"active": 2}}


def test_a_launcher_waits_for_the_workers_when_asked_to() -> None:
    job = job_of(V2, Launcher=1, Worker=2)
    assert ("Launcher", 0) in decide(V2, job, [], times()).create
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    assert decide(V2, job, [], times()).create == [("Worker", 0), ("Worker", 1)]
    ready = pods_of(job, V2, worker_0="Running", worker_1="Running")
    assert decide(V2, job, ready, times()).create == [("Launcher", 0)]


@pytest.mark.parametrize(
    ("kubeflow_kind", "way", "line"),
    [
        (V1, "", "mnist-worker-1 slots=4"),
        (V2, "OpenMPI", "mnist-worker-1.mnist.ai.svc slots=4"),
        (V2, "Intel", "mnist-worker-1.mnist.ai.svc:4"),
    ],
)
def test_it_writes_the_hostfile_as_the_way_of_starting_wants_it(
    kubeflow_kind: KubeflowKind, way: str, line: str
) -> None:
    job = job_of(kubeflow_kind, Launcher=1, Worker=2)
    job["spec"] |= {"slotsPerWorker": 4, "mpiImplementation": way}
    [config] = [body for _, body in kubeflow_kind.extras(job) if body["kind"] == "ConfigMap"]
    assert config["data"]["hostfile"].splitlines()[1] == line


def test_the_launcher_of_the_mpi_operator_is_a_job_that_tries_again() -> None:
    job = job_of(V2, Launcher=1, Worker=2)
    job["spec"]["runPolicy"] = {"backoffLimit": 3}
    made = V2.job_of(job, pod_of(V2, job, "Launcher", 0))
    assert (made["kind"], made["metadata"]["name"], made["spec"]["backoffLimit"]) == ("Job", "mnist-launcher", 3)
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert made["spec"]["template"]["metadata"]["labels"]["training.kubeflow.org/job-role"] == "launcher"
