"""``convoy get spot``: the nodes that were taken back, with what their pods saved and lost, and the pools they are of."""

from tests.cli.builders import ago, cluster

POD = {"job": "1", "namespace": "vision", "name": "llama", "pod": "llama-worker-1", "attempt": 1, "gpus": 8}
RECLAIM = {
    "node": "spot-t4-2", "pool": "t4", "cause": "aws-spot", "at": ago(90), "deadline": ago(0), "notice_s": 120.0,
    "saved": 1, "lost": 1, "lost_gpu_minutes": 12.5,
    "pods": [{**POD, "outcome": "Saved", "saved_step": 40}, {**POD, "namespace": "", "name": "", "outcome": "Lost"}],
}  # fmt: skip


def test_it_lists_the_reclaims_of_all_clusters_with_the_latest_first(server, convoy):
    pools = [{"name": "t4", "nodes": 6, "ready": 5, "gpus": 12}]
    server.page("clusters/", cluster("north"), cluster("spot"))
    server.on("clusters/north/spot/", {"cluster": "north", "pools": [], "reclaims": [{**RECLAIM, "at": ago(900)}]})
    server.on("clusters/spot/spot/", {"cluster": "spot", "pools": pools, "reclaims": [RECLAIM]})
    said = convoy("get", "spot")
    assert said.code == 0, said.err
    heading, first, second = (line.split() for line in said.out.splitlines())
    assert heading[-2:] == ["GPU-MINUTES-LOST", "JOBS"]
    assert first[:3] + first[4:] == ["spot-t4-2", "spot", "t4", "aws-spot", "2m", "2", "1", "1", "12.5", "vision/llama"]
    assert second[1] == "north" and "pool t4 has 5/6 nodes ready, 12 GPUs" in said.err
    assert convoy("get", "spot", "north", "-o", "json").code == 0


def test_a_cluster_that_was_detached_in_between_has_no_reclaims_and_numbers_are_whole(server, convoy):
    server.page("clusters/", cluster("gone"), cluster("north"))
    server.on(
        "clusters/north/spot/",
        {"cluster": "north", "pools": [], "reclaims": [{**RECLAIM, "lost_gpu_minutes": 1234567.5}]},
    )
    said = convoy("get", "spot")
    assert said.code == 0 and "1234567.5" in said.out
    assert convoy("get", "spot", "gone").code != 0
