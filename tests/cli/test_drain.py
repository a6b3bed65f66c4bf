"""``convoy cluster drain``: what would have to move is told first, a person is asked, and only then anything is drained."""

import json

import pytest

from tests.cli.builders import DIFFERENCE, answer, cluster

TAINT = {"key": "convoy.dev/drained", "value": "", "effect": "NoExecute"}


@pytest.fixture
def north(server):
    answer(server, DIFFERENCE)
    server.on("clusters/north/drain/", cluster(drained=True, taints=[TAINT]), method="POST")


def drained(server) -> bool:
    return any(each.path.endswith("/clusters/north/drain/") for each in server.seen)


def test_it_tells_who_has_to_move_then_drains_and_says_what_to_watch(server, convoy, north):
    said = convoy("cluster", "drain", "north")
    assert [each.path for each in server.seen] == ["/api/v1/whatif/", "/api/v1/clusters/north/drain/"]
    assert json.loads(server.seen[0].body) == {"drain_cluster": "north"}
    assert "llama" in said.out and "Runs on north" in said.out and said.out.endswith("cluster/north drained\n")
    assert "convoy get jobs -A -w" in said.err and "convoy cluster uncordon north" in said.err


def test_it_only_tells_when_it_is_a_dry_run(server, convoy, north):
    said = convoy("cluster", "drain", "north", "--dry-run")
    assert said.code == 0 and "0/1 clusters fit" in said.out and not drained(server)


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_it_asks_a_person_first(server, convoy, north, typed, code):
    ended, told = convoy.on_a_terminal(typed, "cluster", "drain", "north")
    assert ended == code and b"Drain north?" in told
    assert drained(server) == (code == 0)


def test_it_does_not_ask_who_said_yes_beforehand(server, convoy, north):
    assert "Drain north?" not in convoy("cluster", "drain", "north", "--yes").err and drained(server)


def test_it_drains_nothing_when_there_is_no_such_cluster(server, convoy):
    server.refuse("whatif/", 404, "there is no cluster north", method="POST")
    assert convoy("cluster", "drain", "north").code == 3 and not drained(server)


def test_it_shows_a_drained_cluster_as_such(server, convoy):
    server.page("clusters/", cluster(cordoned=True, drained=True, taints=[TAINT]))
    server.on("clusters/north/", cluster(drained=True, taints=[TAINT]))
    assert "Ready,Cordoned,Drained" in convoy("cluster", "list").out
    assert "Drained:       yes" in convoy("describe", "cluster", "north").out


def test_it_sets_the_pace_of_the_cluster_and_leaves_its_other_labels(server, convoy, north):
    server.on("clusters/north/", cluster(labels={"gpu": "a100"}))
    server.on("clusters/north/", cluster(), method="PATCH")
    assert convoy("cluster", "drain", "north", "--yes", "--per-minute", "20").code == 0
    [sent] = [each for each in server.seen if each.method == "PATCH"]
    assert json.loads(sent.body) == {"labels": {"gpu": "a100", "convoy.dev/evictions-per-minute": "20"}}
    assert drained(server)


def test_it_drains_nothing_at_no_pace(server, convoy, north):
    assert convoy("cluster", "drain", "north", "--yes", "--per-minute", "-1").code == 2 and not drained(server)


def test_describe_says_how_far_the_drain_is(server, convoy, north):
    server.on("clusters/north/", cluster(drained=True, taints=[TAINT]))
    progress = {"jobs_left": 7, "copies_left": 9, "left_last_minute": 2, "per_minute": 2, "minutes_left": 4}
    server.on("clusters/north/evictions/", progress)
    said = convoy("describe", "cluster", "north").out
    assert "Jobs left:" in said and "2 in the last minute, at most 2 a minute, at least 4 min to go" in said


def test_it_drains_one_node_after_showing_which_jobs_leave_it(server, convoy):
    answer(server, DIFFERENCE)
    path = "clusters/north/nodes/gpu-3"
    for action in ("drain", "cordon", "uncordon"):
        server.on(f"{path}/{action}/", {}, method="POST")
    said = convoy("cluster", "drain", "north", "gpu-3", "--yes")
    assert [each.path for each in server.seen] == ["/api/v1/whatif/", f"/api/v1/{path}/drain/"]
    assert json.loads(server.seen[0].body) == {"drain_node": {"cluster": "north", "node": "gpu-3"}}
    assert "llama" in said.out and said.out.endswith("node/gpu-3 of cluster/north drained\n")
    assert "convoy cluster uncordon north gpu-3" in said.err
    assert convoy("cluster", "cordon", "north", "gpu-3").out == "node/gpu-3 of cluster/north cordoned\n"
    assert convoy("cluster", "uncordon", "north", "gpu-3").out == "node/gpu-3 of cluster/north uncordoned\n"


@pytest.mark.parametrize(
    ("action", "node"), [("drain", ""), ("cordon", ""), ("uncordon", ""), ("cordon", "  "), ("uncordon", "..")]
)
def test_it_never_takes_what_names_no_node_for_the_whole_cluster(server, convoy, north, action, node):
    for each in ("cordon", "uncordon"):
        server.on(f"clusters/north/{each}/", cluster(), method="POST")
    said = convoy("cluster", action, "north", node, *["--yes"] * (action == "drain"))
    assert said.code == 2 and "give the name of" in said.err
    assert not [each for each in server.seen if each.path != "/api/v1/whatif/"]
