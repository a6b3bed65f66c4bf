"""``convoy label node``, kubectl's command line, in the cluster that has the node; and nodes that are excluded."""

import json

PATH = "clusters/north/nodes/gpu-0/"


def node(cluster: str = "north") -> dict:
    return {"name": "gpu-0", "cluster": cluster}


def test_it_sets_and_removes_labels_of_the_node_in_its_cluster(server, convoy):
    server.page("nodes/", node())
    server.on(PATH, {"labels": {}, "overwrite": True}, method="PATCH")
    said = convoy("label", "node", "gpu-0", "ack.node.gpu.schedule=topology", "old-", "--overwrite")
    assert said.out == "node/gpu-0 labeled\n"
    sent = json.loads(server.seen[-1].body)
    assert sent == {"labels": {"ack.node.gpu.schedule": "topology", "old": None}, "overwrite": True}


def test_it_asks_for_the_cluster_where_several_have_the_node(server, convoy):
    server.page("nodes/", node(), node("south"))
    said = convoy("label", "node", "gpu-0", "a=b")
    assert said.code == 2 and "gpu-0 is in north, south" in said.err and "--cluster" in said.err


def test_it_says_what_is_no_label(server, convoy):
    server.page("nodes/", node())
    assert "'topology' is not a label" in convoy("label", "node", "gpu-0", "topology").err


def test_a_node_is_excluded_for_a_while_and_included_again(server, convoy):
    server.on(PATH, {"labels": {}, "overwrite": False}, method="PATCH")
    assert (
        convoy("cluster", "exclude", "north", "gpu-0", "--hours", "2", "--why", "cables").out == "node/gpu-0 excluded\n"
    )
    assert json.loads(server.seen[-1].body) == {"exclude": {"hours": 2.0, "why": "cables"}}
    assert convoy("cluster", "include", "north", "gpu-0").out == "node/gpu-0 takes pods again\n"
    assert json.loads(server.seen[-1].body) == {"exclude": None}


def test_it_shows_which_nodes_are_excluded_until_when(server, convoy):
    excluded = {"until": "2026-11-26T14:10:00Z", "message": "failed 3 times within 24 h"}
    server.page("nodes/", {**node(), "ready": True, "excluded": excluded})
    shown = convoy("get", "nodes", "-o", "wide").out
    assert "Ready,Excluded" in shown and "until 2026-11-26 14:10: failed 3 times within 24 h" in shown
    jobs = [{"job": f"vision/{name}", **excluded} for name in ("llama", "bert")]
    server.page("nodes/", {**node(), "ready": True, "excluded": None, "excluded_for": jobs})
    shown = convoy("get", "nodes", "-o", "wide").out
    assert "Ready,Excluded" not in shown
    assert "for vision/llama until 2026-11-26 14:10: failed 3 times within 24 h (and for 1 more)" in shown
