"""The demo's files: what they say, that the generated one is fresh, and that the training script trains."""

import os
import subprocess
import sys

import pytest
import yaml
from django.utils import timezone

from deploy.bootstrap import up
from deploy.bootstrap.demo import MANIFESTS
from deploy.demo import bundle
from jobs.models import Job
from jobs.services.submission import manifests, submit
from simulator import shape
from tests.support import books
from tests.support.free_ports import free_port


def load(name: str) -> dict:
    return yaml.safe_load((bundle.FOLDER / name).read_text())


def test_the_job_is_a_gang_of_three_with_a_gpu_each() -> None:
    roles = load("pytorchjob.yaml")["spec"]["pytorchReplicaSpecs"]
    limits = [role["template"]["spec"]["containers"][0]["resources"]["limits"] for role in roles.values()]
    assert {name: role["replicas"] for name, role in roles.items()} == {"Master": 1, "Worker": 2}
    assert limits == [{"nvidia.com/gpu": 1}] * 2


def test_the_fleet_is_three_clusters_with_gpus() -> None:
    plan = shape.parse((bundle.FOLDER / "fleet.yaml").read_text())
    gpus = {member.name: sum(pool.count * pool.gpus for pool in member.shape.pools) for member in plan.members}
    assert gpus == {"north": 32, "south": 16, "spot": 12}
    assert len(gpus) == up.SIMULATED


def test_the_policy_places_pytorchjobs_as_gangs() -> None:
    policy = load("policy.yaml")
    assert policy["apiVersion"] == "policy.one.alibabacloud.com/v1alpha1"
    assert policy["spec"]["placement"]["replicaScheduling"]["customSchedulingType"] == "Gang"


def test_the_quota_tree_has_equal_max_and_min_at_its_root() -> None:
    root = load("quota-tree.yaml")["spec"]["root"]
    assert root["max"] == root["min"]


def test_the_bundle_is_what_the_script_makes() -> None:
    assert bundle.main(["--check"]) == 0


def test_the_bundle_carries_the_script_whole() -> None:
    config, job = yaml.safe_load_all(bundle.MANIFEST.read_text())
    assert config["data"]["train.py"] == bundle.SCRIPT.read_text()
    pods = [role["template"]["metadata"]["annotations"] for role in job["spec"]["pytorchReplicaSpecs"].values()]
    assert pods == [{"convoy.dev/run": "process"}] * 2


def train(world: int, **more: str) -> list[subprocess.Popen[str]]:
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    env = {**os.environ, "WORLD_SIZE": str(world), **address, "PAUSE_S": "0"}
    command = [sys.executable, str(bundle.SCRIPT)]
    return [
        subprocess.Popen(command, env={**env, "RANK": str(rank), **more}, stdout=subprocess.PIPE, text=True)
        for rank in range(world)
    ]


@pytest.mark.parametrize("world", [1, 3])
def test_the_script_learns(world: int) -> None:
    ended = [(rank.communicate(timeout=180)[0], rank.returncode) for rank in train(world)]
    assert [code for _, code in ended] == [0] * world
    assert len({said.splitlines()[-1].split()[-1] for said, _ in ended}) == 1


def test_the_script_says_when_it_did_not_learn() -> None:
    (alone,) = train(1, STEPS="1")
    assert "did not learn" in alone.communicate(timeout=180)[0]
    assert alone.returncode == 1


@pytest.mark.django_db
def test_the_demos_tree_admits_the_jobs_that_up_and_the_readme_submit() -> None:
    books.a_cluster("north", 32)
    texts = [(bundle.FOLDER / name).read_text() for name in (*MANIFESTS, "train.yaml")]
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="demo", now=timezone.now())
    books.cycle()
    placed = dict(Job.objects.filter(namespace="default").values_list("name", "leaf"))
    assert placed == {"pytorch-test": "root/playground", "train": "root/playground"}
    assert not Job.objects.filter(namespace="default").exclude(state=Job.State.PLACED).exists()
