"""What the pods of PaddleJobs, XGBoostJobs and JAXJobs are told by their operator, and when such a job runs and ends."""

import pytest

from simulator.operators.kubeflow.jax import Jax
from simulator.operators.kubeflow.paddle import Paddle
from simulator.operators.kubeflow.pods import KubeflowKind, pod_of
from simulator.operators.kubeflow.xgboost import XGBoost
from tests.simulator.operators.operator_cases import pods_of, settled, truths

PADDLE, XGBOOST, JAX = Paddle(), XGBoost(), Jax()


def job_of(kubeflow_kind: KubeflowKind, **roles: int) -> dict:
    template = {"spec": {"containers": [{"name": kubeflow_kind.container, "image": "i"}]}}
    specs = {role: {"replicas": count, "template": template} for role, count in roles.items()}
    return {"metadata": {"name": "mnist", "namespace": "ai", "uid": "u1"}, "spec": {kubeflow_kind.key: specs}}


def env_of(kubeflow_kind: KubeflowKind, job: dict, role: str, index: int = 0) -> dict[str, str]:
    entries = pod_of(kubeflow_kind, job, role, index)["spec"]["containers"][0]["env"]
    return {entry["name"]: entry.get("value", "") for entry in entries}


def test_collective_paddle_meets_at_the_first_worker():
    job = job_of(PADDLE, Worker=2)
    assert env_of(PADDLE, job, "Worker", 1) == {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": "mnist",
        "PADDLE_NNODES": "2",
        "PADDLE_MASTER": "mnist-worker-0:36543",
    }


def test_the_pod_that_paddle_meets_at_is_told_its_own_address_first():
    entries = pod_of(PADDLE, job_of(PADDLE, Worker=2), "Worker", 0)["spec"]["containers"][0]["env"]
    names = [entry["name"] for entry in entries]
    assert names.index("POD_IP_DUMMY") < names.index("PADDLE_MASTER")
    by_name = {entry["name"]: entry for entry in entries}
    assert by_name["PADDLE_MASTER"]["value"] == "$(POD_IP_DUMMY):36543"
    assert by_name["POD_IP_DUMMY"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}


def test_paddle_with_masters_trains_by_parameter_servers():
    job = job_of(PADDLE, Master=1, Worker=2)
    assert env_of(PADDLE, job, "Master")["PADDLE_SERVER_NUM"] == "1"
    worker = env_of(PADDLE, job, "Worker", 0)
    assert (worker["PADDLE_TRAINER_NUM"], worker["PADDLE_MASTER"]) == ("1", "mnist-master-0:36543")
    assert worker["PADDLE_NNODES"] == "3" and "PADDLE_SERVER_NUM" not in worker


def test_xgboost_counts_the_master_as_rank_0_and_names_the_workers_to_lightgbm():
    job = job_of(XGBOOST, Master=1, Worker=2)
    assert env_of(XGBOOST, job, "Worker", 1) == {
        "MASTER_PORT": "9999",
        "MASTER_ADDR": "mnist-master-0",
        "WORLD_SIZE": "3",
        "RANK": "2",
        "PYTHONUNBUFFERED": "1",
        "WORKER_PORT": "9999",
        "WORKER_ADDRS": "mnist-worker-0,mnist-worker-1",
    }
    assert "WORKER_ADDRS" not in env_of(XGBOOST, job_of(XGBOOST, Master=1), "Master")


def test_jax_numbers_its_processes_and_connects_them_to_worker_0():
    assert env_of(JAX, job_of(JAX, Worker=3), "Worker", 2) == {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_PORT": "6666",
        "COORDINATOR_ADDRESS": "mnist-worker-0",
        "NUM_PROCESSES": "3",
        "PROCESS_ID": "2",
    }


@pytest.mark.parametrize(
    ("kubeflow_kind", "roles", "phases", "true"),
    [
        (PADDLE, {"Worker": 2}, {"worker_0": "Succeeded", "worker_1": "Running"}, "Running"),
        (PADDLE, {"Worker": 2}, {"worker_0": "Succeeded", "worker_1": "Succeeded"}, "Succeeded"),
        (PADDLE, {"Master": 1, "Worker": 1}, {"master_0": "Succeeded", "worker_0": "Running"}, "Succeeded"),
        (PADDLE, {"Master": 1, "Worker": 1}, {"master_0": "Pending", "worker_0": "Running"}, "Created"),
        (XGBOOST, {"Master": 1, "Worker": 1}, {"master_0": "Running", "worker_0": "Succeeded"}, "Running"),
        (XGBOOST, {"Master": 1, "Worker": 1}, {"master_0": "Succeeded", "worker_0": "Running"}, "Succeeded"),
        (XGBOOST, {"Master": 1, "Worker": 1}, {"master_0": "Running", "worker_0": "Failed:1"}, "Failed"),
        (JAX, {"Worker": 2}, {"worker_0": "Succeeded", "worker_1": "Running"}, "Running"),
        (JAX, {"Worker": 2}, {"worker_0": "Succeeded", "worker_1": "Succeeded"}, "Succeeded"),
        (JAX, {"Worker": 2}, {"worker_0": "Running", "worker_1": "Failed:1"}, "Failed"),
    ],
)
def test_it_runs_and_ends_with_the_pods_that_count(kubeflow_kind, roles, phases, true):
    job = job_of(kubeflow_kind, **roles)
    assert truths(settled(job, *pods_of(job, kubeflow_kind, **phases), kubeflow_kind=kubeflow_kind))[-1] == true
