"""``convoy submit KIND``: which manifest a command line means, and what is refused by its flag, value and remedy."""

import pytest
import yaml

from frontend.cli.problems import Problem
from frontend.cli.submit import command, flags, kinds
from tests.cli.builders import Convoy, job

NEEDED = ("--name=bert", "--image=example.com/bert:v1")
APPLIED = {
    "results": [{"kind": "TFJob", "namespace": "default", "name": "bert", "action": "created", "warnings": ["slow"]}]
}


def manifest(convoy: Convoy, kind: str, *words: str) -> dict:
    said = convoy("submit", kind, "--dry-run", *NEEDED, *words)
    assert said.code == 0, said.err
    return yaml.safe_load(said.out)


def pod(manifest: dict, role: str) -> dict:
    [replicas] = [value for key, value in manifest["spec"].items() if key.endswith("ReplicaSpecs")]
    return replicas[role]["template"]["spec"]


def test_of_pytorch_workers_one_is_the_master(convoy):
    made = manifest(
        convoy,
        "pytorch",
        "--workers=4",
        "--gpus=8",
        "--nproc-per-node=8",
        "--running-timeout=1h30m",
        "--",
        "train",
        "a b",
    )
    replicas = made["spec"]["pytorchReplicaSpecs"]
    assert (replicas["Master"]["replicas"], replicas["Worker"]["replicas"]) == (1, 3)
    [container] = pod(made, "Worker")["containers"]
    assert container["command"] == ["train", "a b"] and container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert made["spec"]["nprocPerNode"] == "8"
    assert made["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", "activeDeadlineSeconds": 5400}


def test_tensorflow_roles_have_images_amounts_and_nodes_of_their_own(convoy):
    words = ("--workers=2", "--gpus=1", "--ps=1", "--ps-image=ps", "--ps-cpu=2", "--ps-memory-limit=4Gi", "--chief",
             "--selector=pool=a", "--ps-selector=pool=b", "--success-policy=AllWorkers")  # fmt: skip
    made = manifest(convoy, "tfjob", *words)
    assert (
        list(made["spec"]["tfReplicaSpecs"]) == ["PS", "Chief", "Worker"]
        and made["spec"]["successPolicy"] == "AllWorkers"
    )
    servers, workers = pod(made, "PS"), pod(made, "Worker")
    assert (servers["nodeSelector"], workers["nodeSelector"]) == ({"pool": "b"}, {"pool": "a"})
    assert (servers["containers"][0]["image"], workers["containers"][0]["image"]) == ("ps", "example.com/bert:v1")
    assert servers["containers"][0]["resources"] == {"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "4Gi"}}


@pytest.mark.parametrize(
    ("served", "version"), [((), "v2beta1"), (("v1",), "v1"), (("v1", "v2beta1"), "v2beta1")], ids=str
)
def test_an_mpi_job_has_the_version_that_the_clusters_serve(server, convoy, served, version):
    server.page(
        "clusters/", *({"name": each, "apis": {f"kubeflow.org/{each}": {"MPIJob": "mpijobs"}}} for each in served)
    )
    made = manifest(convoy, "mpi", "--gpus=2", "--workers=3", "--gputopology", "--data=set:/data", "mpirun x")
    assert made["apiVersion"] == f"kubeflow.org/{version}" and made["spec"]["slotsPerWorker"] == 2
    launcher, worker = pod(made, "Launcher"), pod(made, "Worker")
    assert launcher["containers"][0]["command"] == ["sh", "-c", "mpirun x"] and "volumes" not in launcher
    assert worker["containers"][0]["resources"]["limits"] == {"aliyun.com/gpu": "2"}
    assert worker["volumes"] == [{"name": "claim-0", "persistentVolumeClaim": {"claimName": "set"}}]


def test_it_mounts_and_fetches_what_the_flags_name(convoy):
    words = ("--data-dir=/mnt/nas:/data", "--share-memory=1Gi", "--sync-mode=git", "--sync-source=https://example.com/t.git",
             "--sync-image=sync", "--working-dir=/root", "--env=GIT_SYNC_BRANCH=main", "--toleration=gpu=a100:NoSchedule",
             "--toleration=spot", "--image-pull-secret=pull", "--hostNetwork=true", "--hostIPC=false",
             "--priority=high")  # fmt: skip
    spec = pod(manifest(convoy, "pytorchjob", *words), "Master")
    mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    assert mounts == {"directory-0": "/data", "shared-memory": "/dev/shm", "code": "/root/code"}
    [fetch] = spec["initContainers"]
    assert {"name": "GIT_SYNC_DEST", "value": "t"} in fetch["env"]
    assert {"name": "GIT_SYNC_BRANCH", "value": "main"} in fetch["env"]
    assert spec["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}, {"key": "spot", "operator": "Exists"},
    ]  # fmt: skip
    assert (spec["hostNetwork"], "hostIPC" in spec, spec["priorityClassName"]) == (True, False, "high")
    assert spec["imagePullSecrets"] == [{"name": "pull"}]


REFUSED = {
    "--workers=0": "--workers: '0' is no whole number from 1 on",
    "--gpus=many": "--gpus: 'many' is no whole number from 0 on",
    "--gang=maybe": "--gang: 'maybe' is neither true nor false",
    "--cpu=4 cores": "--cpu: '4 cores' is not an amount",
    "--memory=16GB": "--memory: '16GB' is not an amount",
    "--env=A": "--env: 'A' is not a key and a value",
    "--label==x": "--label: '=x' is not a key and a value",
    "--selector=pool": "--selector: 'pool' is not a key and a value",
    "--data=imagenet": "--data: 'imagenet' names no claim and mount path",
    "--data-dir=data": "--data-dir: 'data' names no directory of the nodes",
    "--toleration=a=b:Never": "--toleration: 'a=b:Never' has an effect that is none of",
    "--toleration=:NoSchedule": "--toleration: ':NoSchedule' names no taint",
    "--device=amd.com/gpu=x": "--device amd.com/gpu: 'x' is not an amount",
    "--shell=fish": "--shell: 'fish' is not supported",
    "--sync-mode=git": "--sync-mode=git needs --sync-source",
    "--sync-source=x": "--sync-source says where the code is",
    "--running-timeout=soon": "--running-timeout: 'soon' is not a duration",
    "--nproc-per-node=all": "--nproc-per-node: 'all' is no number of processes",
    "--tensorboard": "--tensorboard is not supported for pytorchjob",
    "--config-file=/etc/passwd:/x": "--config-file is not supported for pytorchjob",
    "--gputopology=true": "--gputopology is not supported for pytorchjob",
    "--spot-instance": "--spot-instance is not supported for pytorchjob",
    "--sails=2": "--sails is no flag of pytorchjob",
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_it_cannot_do_is_refused_by_flag_and_value_before_anything_is_sent(server, convoy, word):
    said = convoy("submit", "pytorchjob", *NEEDED, word, "python train.py")
    assert said.code == 2 and REFUSED[word] in said.err, said.err
    assert "hint: " in said.err and not server.seen


@pytest.mark.parametrize("trainer", kinds.SUBMITTED, ids=lambda trainer: trainer.word)
def test_each_flag_is_in_the_help_or_refused_with_what_to_do_instead(convoy, trainer):
    shown = "".join(convoy("submit", trainer.word, "--help", COLUMNS="200").out.split())
    assert [flag.long for flag in trainer.flags if flag.long not in shown and flag.long not in flags.ELSEWHERE] == []
    for flag in trainer.flags:
        if flag.instead:
            with pytest.raises(Problem) as refusal:
                command._checked(trainer, [*NEEDED, f"{flag.long}=x"])
            assert refusal.value.hint == flag.instead


def test_a_value_that_looks_like_a_flag_is_a_value(convoy):
    made = manifest(convoy, "pytorchjob", "--env", "A=1", "-e", "--tensorboard=x", "--label", "--gang=false")
    assert made["metadata"]["labels"] == {"--gang": "false"}


def test_a_job_or_a_secret_that_exists_is_not_replaced(server, convoy):
    server.page("jobs/", job("bert", kind="TrainingJob", api_version="kai.alibabacloud.com/v1alpha1"))
    said = convoy("submit", "etjob", *NEEDED, "x")
    assert said.code == 4 and "hint: choose another --name, or delete it: convoy delete bert --type etjob" in said.err
    server.page("jobs/")
    server.page("dependents/", {"id": "1", "kind": "Secret", "namespace": "default", "name": "bert"})
    said = convoy("submit", "etjob", *NEEDED, "x")
    assert said.code == 4 and "--ssh-secret=bert" in said.err
    assert {request.method for request in server.seen} == {"GET"}


def test_of_two_submissions_at_the_same_moment_the_later_one_reports_that_it_created_nothing(server, convoy):
    server.page("jobs/")
    result = {"kind": "TFJob", "namespace": "default", "name": "bert", "action": "configured", "warnings": []}
    server.on("apply", {"results": [result]}, method="POST")
    said = convoy("submit", "tfjob", *NEEDED, "x")
    assert (said.code, said.out) == (4, "") and "the job bert exists already: configured" in said.err


def test_a_token_that_may_not_list_clusters_submits_mpi_jobs_of_the_current_version(server, convoy):
    server.refuse("clusters/", 403, "you may not")
    assert manifest(convoy, "mpijob", "x")["apiVersion"] == "kubeflow.org/v2beta1"


def test_a_dry_run_needs_no_server(convoy):
    said = convoy("submit", "mpijob", "--dry-run", *NEEDED, "x", CONVOY_URL="")
    assert yaml.safe_load(said.out)["apiVersion"] == "kubeflow.org/v2beta1"


def test_with_a_secret_of_ones_own_no_key_is_made(server, convoy):
    server.page("jobs/")
    server.on("apply", APPLIED, method="POST")
    said = convoy("submit", "etjob", *NEEDED, "--ssh-secret=keys", "x")
    assert said.out.splitlines()[0] == "trainingjob.kai.alibabacloud.com/bert created" and "secret/" not in said.out
    [made] = yaml.safe_load_all(server.sent("POST").body)
    assert made["metadata"]["annotations"] == {"arena.kubeflow.org/ssh-secret": "keys"}
    assert pod(made, "worker")["volumes"] == [{"name": "convoy-ssh-key", "secret": {"secretName": "keys"}}]


def test_the_log_level_decides_what_it_prints_of_its_own_work(server, convoy):
    server.page("jobs/")
    server.on("apply", APPLIED, method="POST")
    said = convoy("submit", "tfjob", *NEEDED, "--loglevel=error", "x")
    assert (said.out, said.err) == ("tfjob.kubeflow.org/bert created\n", "warning: tfjob/bert: slow\n")
    assert "kind: TFJob" in convoy("submit", "tfjob", *NEEDED, "--loglevel=debug", "x").err


def test_the_kind_comes_first_and_what_is_no_kind_is_a_file(server, convoy):
    assert "submit etjob|mpijob|pytorchjob|tfjob --gang" in convoy("submit", "--gang", "mpi").err
    assert "write a manifest of kind RayJob" in convoy("submit", "rayjob").err
    assert "use `submit mpijob`" in convoy("submit", "horovodjob").err
    server.on("apply", APPLIED, method="POST")
    (convoy.home / "a.yaml").write_text("kind: A\n")
    assert convoy("submit", "a.yaml").out == "tfjob/bert created\n"
    assert convoy("submit", "-", stdin="kind: B").code == 0
    assert server.seen[-1].body == b"kind: B"


def test_no_name_and_no_image_are_missing_by_name(convoy):
    assert "--name is missing" in convoy("submit", "tf", "x").err
    assert "--image is missing" in convoy("submit", "tf", "--name=a", "x").err
