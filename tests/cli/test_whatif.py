"""``convoy whatif``: what is supposed goes out as one body, and what would be otherwise comes back as a table."""

import json

import pytest

from tests.cli.builders import DIFFERENCE, answer


def test_it_tells_who_would_stand_otherwise(server, convoy):
    answer(server, DIFFERENCE)
    said = convoy("whatif", "--lose-cluster", "north")
    assert json.loads(server.sent("POST").body) == {"lose_cluster": "north"}
    assert "Runs on north" in said.out and "0/1 clusters fit" in said.out and "1 wait" in said.err


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (("--drain-node", "north/a100-0"), {"drain_node": {"cluster": "north", "node": "a100-0"}}),
        (("--drain-cluster", "north"), {"drain_cluster": "north"}),
    ],
)
def test_it_supposes_a_drain(server, convoy, words, change):
    answer(server, DIFFERENCE)
    assert "Runs on north" in convoy("whatif", *words).out
    assert json.loads(server.sent("POST").body) == change


def test_it_supposes_several_things_at_once(server, convoy):
    answer(server)
    (convoy.home / "a.yaml").write_text("kind: A\n")
    words = ("--add-job", "a.yaml", "--add-nodes", "north=2", "--raise-quota", "root/a", "--max", "cpu=8")
    assert convoy("whatif", *words).out == "No job would be affected.\n"
    sent = json.loads(server.sent("POST").body)
    assert sent["add_job"] == "kind: A" and sent["add_nodes"] == {"cluster": "north", "count": 2}
    assert sent["raise_quota"] == {"path": "root/a", "max": {"cpu": "8"}, "min": {}}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--max", "cpu=8"),
        ("--add-nodes", "north=many"),
        ("--drain-node", "north"),
        ("--lose-cluster", "a", "-o", "x"),
    ],
)
def test_it_refuses_what_says_nothing(convoy, words):
    assert convoy("whatif", *words).code == 2
