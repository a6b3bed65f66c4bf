"""Names, labels and environment of a PyTorchJob's pods."""

from simulator.operators.kubeflow.pods import own_group, pod_of, service_of
from simulator.scheduler.packing import POD_GROUP
from tests.simulator.operators.operator_cases import PYTORCH, pytorch_job

PREFIX = "training.kubeflow.org/"


def env_of(pod: dict) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}


def test_it_names_and_labels_pods_as_the_operator_does() -> None:
    pod = pod_of(PYTORCH, pytorch_job(), "Worker", 1)
    assert pod["metadata"]["name"] == "llama-worker-1"
    assert pod["metadata"]["labels"] == {
        f"{PREFIX}job-name": "llama",
        f"{PREFIX}operator-name": "pytorchjob-controller",
        f"{PREFIX}replica-type": "worker",
        f"{PREFIX}replica-index": "1",
    }
    assert pod["metadata"]["ownerReferences"][0]["controller"] is True


def test_it_marks_the_chief() -> None:
    assert pod_of(PYTORCH, pytorch_job(), "Master", 0)["metadata"]["labels"][f"{PREFIX}job-role"] == "master"
    alone = pod_of(PYTORCH, pytorch_job(master=False), "Worker", 0)
    assert alone["metadata"]["labels"][f"{PREFIX}job-role"] == "master"


def test_it_tells_each_pod_its_rank_and_where_the_master_is() -> None:
    job = pytorch_job()
    env = env_of(pod_of(PYTORCH, job, "Worker", 1))
    assert (env["RANK"], env["PET_NODE_RANK"], env["WORLD_SIZE"]) == ("2", "2", "3")
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("llama-master-0", "23456")
    assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"], env["PYTHONUNBUFFERED"]) == ("3", "auto", "1")
    assert env_of(pod_of(PYTORCH, job, "Master", 0))["RANK"] == "0"


def test_it_multiplies_the_world_by_the_processes_of_a_node() -> None:
    job = pytorch_job()
    job["spec"]["nprocPerNode"] = "8"
    assert PYTORCH.environment(job, "Master", 0, 1)["WORLD_SIZE"] == "24"


def test_it_tells_elastic_workers_where_to_meet() -> None:
    job = pytorch_job(master=False, workers=4)
    job["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 4, "rdzvId": "r1"}
    env = PYTORCH.environment(job, "Worker", 0, 23456)
    assert (env["PET_NNODES"], env["PET_RDZV_BACKEND"]) == ("2:4", "c10d")
    assert (env["PET_RDZV_ENDPOINT"], env["PET_RDZV_ID"]) == ("llama-worker-0:23456", "r1")


def test_it_lets_workers_wait_for_the_master() -> None:
    assert pod_of(PYTORCH, pytorch_job(), "Worker", 0)["spec"]["initContainers"][0]["name"] == "init-pytorch"
    assert "initContainers" not in pod_of(PYTORCH, pytorch_job(), "Master", 0)["spec"]


def test_it_copies_the_template_and_overwrites_its_restart_policy() -> None:
    job = pytorch_job(restart="ExitCode")
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"labels": {"team": "speech"}, "annotations": {"a": "b"}}
    template["spec"]["restartPolicy"] = "Always"
    pod = pod_of(PYTORCH, job, "Worker", 0)
    assert pod["metadata"]["labels"]["team"] == "speech"
    assert (pod["metadata"]["annotations"], pod["spec"]["restartPolicy"]) == ({"a": "b"}, "Never")
    assert template["spec"]["restartPolicy"] == "Always"


def test_it_makes_a_headless_service_for_each_pod() -> None:
    service = service_of(PYTORCH, pytorch_job(), "Master", 0)
    assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == ("llama-master-0", "None")
    assert service["spec"]["ports"][0]["port"] == 23456


def test_it_brings_a_group_only_when_asked_and_not_there_yet() -> None:
    job = pytorch_job(schedulingPolicy={"minAvailable": 2})
    assert own_group(PYTORCH, pytorch_job()) is None
    assert (own_group(PYTORCH, job) or ({}, {}))[1]["spec"] == {"minMember": 2}
    assert pod_of(PYTORCH, job, "Worker", 0)["metadata"]["labels"][POD_GROUP] == "llama"
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"] = {"labels": {POD_GROUP: "theirs"}}
    assert own_group(PYTORCH, job) is None
    assert pod_of(PYTORCH, job, "Worker", 0)["metadata"]["labels"][POD_GROUP] == "theirs"


def test_it_says_why_a_job_can_never_run() -> None:
    two = pytorch_job()
    two["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = 2
    assert PYTORCH.wrong(two) == "there must be exactly one Master"
    assert PYTORCH.wrong(pytorch_job(master=False, workers=0)) != ""
    assert PYTORCH.wrong(pytorch_job()) == ""
