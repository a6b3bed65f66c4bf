"""1.3: GPU topology as people see it: on the command line, which speaks to the running server."""

import pytest

from frontend.cli import human
from tests.acceptance.builders import POLICY, by_links, gpus_of, linked, mpi_job, near, occupied

pytestmark = pytest.mark.django_db(transaction=True)


def test_1_3_2_a_topology_node_tells_how_its_gpus_are_linked_and_how_fast(world, as_admin):
    linked(world, "north", 8)
    found = as_admin.get("/api/v1/gpus/north/north-pool0-0/").json()
    assert found["links"][0] == ["N-A", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"]
    assert found["bandwidth"][0][:5] == [740.0, 48.2, 48.2, 96.4, 96.4]


def test_1_3_3_four_workers_are_on_one_node_on_its_best_free_gpus_and_the_launcher_has_none(world):
    linked(world, "north", 2, 8)
    world.apply(POLICY, by_links(mpi_job(workers=4)))
    world.expect("vgg16", "Running")
    world.until(lambda: all(gpus_of(world, "north", "vgg16")), "every worker has its GPU")
    pods = {pod["metadata"]["name"]: pod for pod in world.pods("north")}
    workers = [pod for name, pod in pods.items() if "-worker-" in name]
    assert {pod["spec"]["nodeName"] for pod in workers} == {"north-pool1-0"} and len(workers) == 4
    [launcher] = [pod for name, pod in pods.items() if "-launcher" in name]
    assert "aliyun.com/gpu" not in str(launcher["spec"])
    assert sorted(gpus_of(world, "north", "vgg16")) == ["0", "1", "2", "3"]


def test_1_3_5_a_gang_that_lacks_gpus_waits_whole_and_holds_none(world):
    linked(world, "north", 8)
    occupied(world, "north", "0,1,2,3,4,5")
    world.apply(POLICY, by_links(mpi_job(workers=4)))
    world.until(lambda: (world.job("vgg16").reason or {}).get("code") == "NoClusterFits", "the reason is written")
    assert world.job("vgg16").reason["clusters"][0]["short"] == {"aliyun.com/gpu": 2}
    assert [pod["metadata"]["name"] for pod in world.pods("north")] == ["stranger"]


def test_1_3_7_convoy_top_node_prints_both_matrices_and_which_pod_has_which_gpu(world, convoy):
    linked(world, "north", 8)
    world.apply(POLICY, by_links(mpi_job(workers=4)))
    world.expect("vgg16", "Running")
    world.until(lambda: all(gpus_of(world, "north", "vgg16")), "every worker has its GPU")
    said = convoy("top", "node", "north-pool0-0", "-d")
    assert said.code == 0, said.err
    lines = [line.split() for line in said.out.splitlines()]
    at = lines.index(["LinkTypeMatrix:"])
    assert lines[at + 2] == ["GPU0", "N-A", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"]
    assert ["GPU0", "740.0", "48.2", "48.2", "96.4", "96.4", "12.0", "12.0", "12.0"] in lines
    [mine] = [line for line in lines if line[:1] == ["GPU0"] and line[-1].startswith("default/")]
    assert mine[1:3] == ["using", "true"] and mine[3].startswith("default/vgg16-worker-")
    assert ["GPU7", "idle", "true", human.NONE] in lines


def test_1_3_8_convoy_simulate_foretells_the_speed_with_links_and_without(convoy):
    for model, linked_speed, plain_speed in (("vgg16", 205, 109), ("resnet50", 330.5, 313)):
        said = convoy("simulate", "--model", model, "--gpus", "4")
        assert said.code == 0, said.err
        lines = [line.split() for line in said.out.splitlines()]
        speeds = {line[0]: float(line[-2]) for line in lines[1:]}
        assert speeds["NVLink"] == pytest.approx(linked_speed, rel=0.1)
        assert speeds["one"] == pytest.approx(plain_speed, rel=0.1)


def test_1_3_8_a_jobs_place_and_explanation_tell_the_speed_of_its_links(world, as_admin, convoy):
    linked(world, "north", 8)
    world.apply(POLICY, near(by_links(mpi_job(workers=4)), model="vgg16"))
    job = world.expect("vgg16", "Running")
    placement = as_admin.get(f"/api/v1/jobs/{job.uid}/").json()["placement"]
    assert placement["gpus"] == {"north-pool0-0": [0, 1, 2, 3]} and placement["speed"]["per_gpu"] == 205.1
    assert as_admin.get(f"/api/v1/jobs/{job.uid}/explain/").json()["speed"] == placement["speed"]
    said = convoy("explain", "mpijob/vgg16")
    assert "205.1/s per GPU, 820.4/s in total, over the links of GPUs 0,1,2,3 of north-pool0-0 (80 GB/s)" in said.out
