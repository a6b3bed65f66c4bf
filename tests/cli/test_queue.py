"""``convoy queue``: the tree drawn, queues listed, held and opened, a job moved."""

import json

import pytest

from tests.cli.builders import JOB_ID, ago, job

GPU = "nvidia.com/gpu"


def amount(used=0, least=0, most=None, **fields):
    return {"used": used, "requested": used, "min": least, "max": most, "borrowed": 0, "lent": 0} | fields


def node(path, gpus, **fields):
    parent, _, name = path.rpartition("/")
    return {"path": path, "name": name, "parent": parent, "queue_state": "Open", "resources": {GPU: gpus}} | fields


TREE = {
    "nodes": [
        node("root", amount(7, 8, 8)),
        node("root/vision", amount(7, 4, 8, borrowed=3)),
        node("root/vision/night", amount(7, 0, 8), queue_state="Held"),
        node("root/speech", amount(0, 4, 6, requested=2, lent=3)),
    ],
    "outside_jobs": "Wait",
    "outside": {"running": 2, "waiting": 5, "gpus": 12},
}
QUEUE = {
    "name": "root-vision-bcdfg", "path": "root/vision", "state": "Open", "state_by": "", "state_comment": "",
    "created_at": ago(60),
}  # fmt: skip
UNIT = {
    "namespace": "default", "name": "llama", "queue": "root/vision", "phase": "Enqueued", "position": 1, "priority": 0,
    "request": {GPU: 3, "pods": 3}, "message": "root/vision has max 8 nvidia.com/gpu",
    "estimate": {"starts_at": ago(-50 * 3600 - 1800), "basis": "median of 3 finished jobs of root/vision"},
}  # fmt: skip


def test_it_draws_the_tree_with_what_is_in_use(server, convoy):
    server.on("quota/tree/", TREE)
    header, *rows = convoy("queue", "tree").out.splitlines()
    assert header.split()[:4] == ["QUOTA", "GPUS", "USED", "MIN"]
    assert [row.split("   ")[0].rstrip() for row in rows] == ["root", "├─ vision", "│  └─ night", "└─ speech"]
    assert rows[1].split()[3:8] == ["7", "4", "8", "3", "0"] and rows[2].endswith("Held")
    assert rows[3].split()[-2:] == ["3", "2"]


def test_it_shows_what_children_that_share_fairly_are_compared_by(server, convoy):
    share = {"borrowed": 0.375, "recent": 0.4, "entitled": 0.5}
    nodes = [
        node("root", amount(7, 8, 8), share=None),
        node("root/vision", amount(7, 4, 8), share=share),
        node("root/speech", amount(0, 4, 6), share=share | {"borrowed": None, "recent": None}),
    ]
    server.on("quota/tree/", TREE | {"nodes": nodes})
    header, *rows = (line.split("  ")[-1].strip() for line in convoy("queue", "tree").out.splitlines())
    assert (header, rows) == ("SHARE", ["-", "37.5% borrowed, 40% used of 50%", "weight 0"])


def test_it_says_how_much_is_in_use_outside_the_tree(server, convoy):
    server.on("quota/tree/", TREE)
    told = convoy("queue", "tree").err
    assert "12 GPUs in use by 2 running jobs, 5 jobs wait (outside-jobs: Wait)" in told


def test_it_lists_queues(server, convoy):
    server.page("queues/", QUEUE)
    assert convoy("queue", "list").out.splitlines()[1].split()[:3] == ["root-vision-bcdfg", "root/vision", "Open"]
    assert convoy("queue", "list", "-o", "name").out == "queue/root-vision-bcdfg\n"
    assert json.loads(convoy("queue", "list", "-o", "json").out) == [QUEUE]


def test_it_shows_who_waits_and_why(server, convoy):
    server.page("queues/", QUEUE)
    server.page("queueunits/", UNIT)
    said = convoy("queue", "get", "root/vision").out.splitlines()[1]
    assert said.split()[:2] == ["1", "default/llama"] and "3 nvidia.com/gpu" in said and "has max 8" in said
    assert "~2d2h (median of 3 finished jobs of root/vision)" in said


@pytest.mark.parametrize(
    ("verb", "state"), [("hold", "Held"), ("drain", "Draining"), ("stop", "Stopped"), ("open", "Open")]
)
def test_it_changes_the_state_of_a_queue(server, convoy, verb, state):
    server.page("queues/", QUEUE)
    server.on(f"queues/root-vision-bcdfg/{verb}/", QUEUE | {"state": state}, method="POST")
    assert (
        convoy("queue", verb, "root/vision", "-m", "why").out == f"queue/root-vision-bcdfg (root/vision) is {state}\n"
    )
    assert json.loads(server.sent("POST").body) == {"comment": "why"}


def test_it_moves_a_job(server, convoy):
    server.page("queues/", QUEUE)
    server.page("jobs/", job())
    server.on(f"queueunits/{JOB_ID}/move/", UNIT, method="POST")
    assert convoy("queue", "move", "llama", "root-vision-bcdfg").out == "default/llama is number 1 in root/vision\n"


def test_it_says_when_there_is_no_such_queue(server, convoy):
    server.page("queues/")
    said = convoy("queue", "hold", "root/x")
    assert said.code == 3 and "no queue 'root/x'" in said.err


def test_get_queue_lists_names_and_ages_and_one_of_them_wide_with_its_jobs_in_order(server, convoy):
    server.page("queues/", QUEUE)
    header, row = convoy("get", "queue").out.splitlines()
    assert (header.split(), row.split()[0]) == (["NAME", "AGE"], "root-vision-bcdfg")
    server.page("queueunits/", UNIT)
    wide = convoy("get", "queue", "root-vision-bcdfg", "-o", "wide").out.splitlines()
    assert wide[0].split()[:3] == ["POSITION", "JOB", "PHASE"] and wide[1].split()[:2] == ["1", "default/llama"]
