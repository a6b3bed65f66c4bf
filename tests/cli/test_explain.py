"""``convoy explain``: a table of the clusters, who holds what, and what would let the job start."""

import json

from tests.cli.builders import JOB_ID, ago, job

CLAIM = {"job": "default/whisper", "amounts": {"nvidia.com/gpu": 4}, "pods": 3, "made_at": ago(1), "ends": "later"}
NORTH = {
    "cluster": "north", "fits": False, "chosen": False, "code": "NotEnoughFree", "cause": "Short",
    "missing": {"nvidia.com/gpu": 2},
    "message": "is short of 2 nvidia.com/gpu", "role": "worker", "nodes": "nodes",
    "never_fits": False, "affinity_term": 0, "score": 0.0,
    "score_parts": {}, "holds": [CLAIM],
}  # fmt: skip
SOUTH = NORTH | {
    "cluster": "south",
    "fits": True,
    "code": "Fits",
    "cause": "None",
    "score": 0.5,
    "score_parts": {"pack": 0.5},
}
CHANGE = {"kind": "AddNodes", "message": "add 2 nodes to north", "cluster": "north"}


def answer(**fields):
    told = {"outcome": "Waits", "message": "0/2 clusters fit", "never_fits": False, "quota": None, "at": ago(0)}
    return job(state="Queued", cluster=None) | told | {"clusters": [NORTH], "changes": [CHANGE]} | fields


def explain(server, convoy, *words, **fields):
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/explain/", answer(**fields))
    return convoy("explain", *(words or ("llama",)))


def test_it_tells_every_cluster_and_what_would_help(server, convoy):
    said = explain(server, convoy, clusters=[SOUTH, NORTH])
    assert said.code == 0
    assert said.out.startswith("pytorchjob/llama is Queued: 0/2 clusters fit\n")
    assert "pack 0.50" in said.out and "is short of 2 nvidia.com/gpu" in said.out
    assert "default/whisper" in said.out and said.out.endswith("It would start if you:\n  add 2 nodes to north\n")


def test_it_says_of_a_running_job_when_it_was_placed_by_these_scores(server, convoy):
    placed = {"state": "Running", "cluster": "south", "outcome": "Placed", "message": "it runs on south", "attempt": 2}
    south = SOUTH | {"chosen": True, "holds": []}
    said = explain(
        server,
        convoy,
        **placed,
        at=ago(2 * 86_400),
        clusters=[south, SOUTH | {"cluster": "west", "holds": []}],
        changes=[],
    )
    first, heading, _, *rows = said.out.splitlines()
    assert first == "pytorchjob/llama is Running on south"
    assert heading == "Clusters, as attempt 2 was placed 2d ago:"
    assert [row.split()[:4] for row in rows] == [
        ["south", "Chosen", "<none>", "0.500"],
        ["west", "Fits", "<none>", "0.500"],
    ]


def test_it_says_never_and_the_quota(server, convoy):
    quota = {"code": "QuotaExceeded", "path": "root/a", "message": "root/a is at its max"}
    said = explain(server, convoy, never_fits=True, quota=quota)
    assert "does not fit on any cluster" in said.out and "Quota: QuotaExceeded: root/a is at its max" in said.out


def test_it_prints_json_and_refuses_other_shapes(server, convoy):
    assert json.loads(explain(server, convoy, "llama", "-o", "json").out)["outcome"] == "Waits"
    assert explain(server, convoy, "llama", "-o", "csv").code == 2
