"""``convoy cluster detach``: a person is asked, and a script has to say that it means it."""

import pytest


@pytest.fixture
def north(server):
    server.on("clusters/north/", {}, method="DELETE")


def detached(server) -> bool:
    return any(each.method == "DELETE" for each in server.seen)


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_it_asks_a_person_first(server, convoy, north, typed, code):
    ended, told = convoy.on_a_terminal(typed, "cluster", "detach", "north")
    assert ended == code and b"Detach north?" in told
    assert detached(server) == (code == 0)


def test_it_refuses_where_nobody_can_be_asked(server, convoy, north):
    said = convoy("cluster", "detach", "north", "--force")
    assert said.code == 2 and "--yes" in said.err and not detached(server)


def test_it_does_not_ask_who_said_yes_beforehand(server, convoy, north):
    said = convoy("cluster", "detach", "north", "--yes", "--force")
    assert said.code == 0 and said.out == "cluster/north detached\n" and detached(server)
