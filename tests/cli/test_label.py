"""``convoy label node``: kubectl's command line, in the cluster that has the node."""

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
