"""1.3: MPIJobs, as far as they are a kind of job: the launcher leads, the gang waits whole, each version has its clusters."""

import json

import pytest

from fleet.models import Pod
from jobs.kinds import registry
from jobs.services.inspect import logs
from tests.acceptance.builders import POLICY, mpi_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_1_3_3_the_chief_is_a_launcher_without_a_gpu_and_each_of_the_four_workers_has_one(world):
    world.member("north", 4)
    world.apply(POLICY, mpi_job())
    job = world.expect("vgg16", "Running")
    gpus = {role["name"]: role["request"].get("nvidia.com/gpu", 0) for role in job.roles}
    assert gpus == {"launcher": 0, "worker": 1}
    assert registry.kind_of(job.api_version, job.kind).primary_role(gpus) == "launcher"
    assert job.status["replicaStatuses"] == {"Launcher": {"active": 1}, "Worker": {"active": 4}}


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_1_3_5_a_job_whose_requests_are_not_satisfied_waits_whole_and_holds_no_gpu(world, ada, version):
    world.member("north", 2, serves={"mpijobs.kubeflow.org": version})
    ada.says("apply", "-f", "-", given=f"{POLICY}\n---\n{mpi_job(version=version)}")
    world.until(lambda: (world.job("vgg16").reason or {}).get("code") == "NoClusterFits", "the reason is written")
    shown = json.loads(ada.says("get", f"mpijobs.{version}.kubeflow.org", "vgg16", "-o", "json"))
    [verdict] = shown["status"]["convoy"]["reason"]["clusters"]
    assert verdict["short"] == {"nvidia.com/gpu": 2}
    assert world.copies("mpijobs", f"kubeflow.org/{version}") == {"north": []} and world.pods("north") == []


def test_1_3_10_logs_follow_the_launcher_by_default(world):
    world.member("north", 4)
    world.apply(POLICY, mpi_job())
    job = world.expect("vgg16", "Running")
    world.until(lambda: Pod.objects.filter(job_uid=job.uid, role="launcher").exists(), "the launcher is seen")
    log = logs.stream(job, None)
    assert log.pod.name.startswith("vgg16-launcher")
    log.close()


def test_trap_5_a_version_goes_only_where_it_is_served_and_the_others_say_so_by_name(world):
    world.member("old", 8, serves={"mpijobs.kubeflow.org": "v1"})
    world.member("new", 8, serves={"mpijobs.kubeflow.org": "v2beta1"})
    world.apply(POLICY, mpi_job("one", version="v1"), mpi_job("two", version="v2beta1"))
    world.expect("one", "Running", on="old")
    world.expect("two", "Running", on="new")


def test_trap_5_a_version_served_nowhere_waits_with_the_clusters_named(world):
    world.member("new", 8, serves={"mpijobs.kubeflow.org": "v2beta1"})
    world.apply(POLICY, mpi_job(version="v1"))
    world.until(lambda: (world.job("vgg16").reason or {}).get("clusters"), "the reason is written")
    [verdict] = world.job("vgg16").reason["clusters"]
    assert verdict["cluster"] == "new" and "does not serve kubeflow.org/v1 MPIJob" in verdict["message"]
