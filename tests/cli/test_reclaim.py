"""``convoy cluster reclaim``: a node of a simulated cluster goes, named by itself or by the job whose last pod it has."""

import json

import pytest

from tests.cli.builders import JOB_ID, ago, job

PODS = [
    {
        "name": f"llama-worker-{i}",
        "index": i,
        "attempt": 1,
        "cluster": "spot",
        "node": f"spot-t4-{i}",
        "phase": "Running",
    }
    for i in range(3)
]


@pytest.fixture
def spot(server):
    server.page("jobs/", job())
    server.page(f"jobs/{JOB_ID}/pods/", PODS[2], PODS[0], {**PODS[1], "node": "", "phase": "Pending", "index": 9})
    for method in ("POST", "DELETE"):
        server.on("clusters/spot/nodes/spot-t4-2/reclaim/", None, method=method)


def test_it_reclaims_the_node_of_a_jobs_last_pod_and_brings_it_back(server, convoy, spot):
    said = convoy("cluster", "reclaim", "spot", "--job", "llama", "--notice", "1m30s")
    assert (said.code, said.out) == (0, "node/spot-t4-2 is reclaimed in 1m30s\n"), said.err
    assert json.loads(server.sent("POST").body) == {"notice_s": 90.0}
    assert "convoy cluster reclaim spot spot-t4-2 --back" in said.err
    assert convoy("cluster", "reclaim", "spot", "spot-t4-2", "--back").out == "node/spot-t4-2 is back\n"
    rows = [
        {"cluster": "spot", "node": f"spot-t4-{i}", "at": at} for i, at in ((1, ago(90)), (2, ago(5)), (0, ago(50)))
    ]
    server.on(f"jobs/{JOB_ID}/notices/", rows)
    assert convoy("cluster", "reclaim", "spot", "--job", "llama", "--back").out == "node/spot-t4-2 is back\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name a node, or a job"),
        (("spot-t4-2", "--job", "llama"), "name a node, or a job"),
        (("spot-t4-2", "--notice", "soon"), "'soon' is not a duration"),
    ],
)
def test_it_says_what_to_name(server, convoy, spot, words, says):
    said = convoy("cluster", "reclaim", "spot", *words)
    assert said.code == 2 and says in said.err


def test_it_says_where_the_job_does_not_run(server, convoy, spot):
    said = convoy("cluster", "reclaim", "north", "--job", "llama")
    assert said.code == 3 and "no pod of llama runs in cluster north" in said.err
