"""``convoy user``: what each verb asks of the server, and what it says."""

import json

ROLE = {"id": 7, "role": "editor", "namespace": "vision"}
USER = {"username": "bob", "active": True, "superuser": False, "last_login": None, "roles": [ROLE]}


def test_it_lists_users_with_their_roles(server, convoy):
    server.page("users/", USER)
    assert "editor in vision" in convoy("user", "list").out


def test_it_makes_a_user_with_a_password_from_stdin(server, convoy):
    server.on("users/", USER, method="POST")
    assert convoy("user", "create", "bob", "--password-stdin", stdin="correct horse\n").out == "user/bob created\n"
    assert json.loads(server.sent("POST").body) == {"username": "bob", "password": "correct horse"}


def test_it_disables_enables_and_sets_passwords(server, convoy):
    for deed in ("disable", "enable", "password"):
        server.on(f"users/bob/{deed}/", USER, method="POST")
    assert convoy("user", "disable", "bob").out == "user/bob disabled\n"
    assert convoy("user", "enable", "bob").out == "user/bob enabled\n"
    assert "new password" in convoy("user", "password", "bob", "--password-stdin", stdin="correct horse\n").out
    assert convoy("user", "password", "bob", "--password-stdin").code == 2


def test_it_gives_and_takes_back_a_role(server, convoy):
    grant = ROLE | {"user": "bob"}
    server.on("grants/", grant, method="POST")
    server.page("grants/", grant)
    server.on("grants/7/", {}, method="DELETE")
    assert "bob is editor in vision" in convoy("user", "grant", "bob", "editor", "-n", "vision").out
    assert "no longer editor" in convoy("user", "revoke", "bob", "editor", "-n", "vision").out
    assert convoy("user", "revoke", "bob", "editor").code == 3


def test_it_names_and_unnames_team_leads(server, convoy):
    lead = {"id": 3, "user": "bob", "path": "root/vision"}
    server.on("leads/", lead, method="POST")
    server.page("leads/", lead)
    server.on("leads/3/", {}, method="DELETE")
    assert convoy("user", "lead", "bob", "root/vision").out == "user/bob leads root/vision\n"
    assert "no longer" in convoy("user", "unlead", "bob", "root/vision").out


def test_it_resets_a_second_factor(server, convoy):
    server.on("users/vera/reset-second-factor/", b"", method="POST", status=204)
    assert "password alone" in convoy("user", "reset-second-factor", "vera").out


def test_it_revokes_all_tokens_of_a_user(server, convoy):
    server.on("users/vera/revoke-tokens/", {"revoked": 3}, method="POST")
    assert convoy("user", "revoke-tokens", "vera").out == "user/vera: 3 tokens revoked\n"
