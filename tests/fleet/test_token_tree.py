"""Tokens end with the token that minted them, and with the password of the user who did."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.core.security.token_scopes import Scope
from fleet.errors import Forbidden
from fleet.models import AuditEntry, LoginCode, Token
from fleet.services.authorization import access, cli_logins, grants, token_tree, users
from tests.fleet.builders import TokenClient, by_token, status_of
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
NEW = "another long password"


def client(text: str) -> TokenClient:
    made = TokenClient(enforce_csrf_checks=True)
    made.text = text
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return made


def minted_with(parent: APIClient, path: str = "tokens/", **body: object) -> TokenClient:
    answer = parent.post(f"/api/v1/{path}", {"name": "more", **body}, format="json")
    assert answer.status_code == 201, answer.content
    return client(answer.json()["token"])


def row_of(tokens: TokenClient) -> Token:
    return Token.objects.get(digest=access.digest(tokens.text))


def live(*clients: APIClient) -> list[bool]:
    return [each.get("/api/v1/me/").status_code == 200 for each in clients]


def test_a_revoked_token_takes_along_all_that_it_minted_and_no_other(admin):
    stolen, own = by_token(admin, Scope()), by_token(admin, Scope())
    person("bob")
    child = minted_with(stolen)
    grandchild, of_bob = minted_with(child), minted_with(stolen, "users/bob/tokens/")
    assert live(stolen, child, grandchild, of_bob, own) == [True] * 5
    assert own.delete(f"/api/v1/tokens/{row_of(stolen).pk}/").status_code == 204
    assert live(stolen, child, grandchild, of_bob, own) == [False, False, False, False, True]
    assert AuditEntry.objects.get(verb="revoke").name == f"ada: {row_of(stolen).pk}, and 3 minted with it"
    assert own.delete(f"/api/v1/tokens/{row_of(stolen).pk}/").status_code == 204
    assert AuditEntry.objects.filter(verb="revoke").count() == 1


def test_a_child_is_revoked_without_its_parent_and_by_an_admin_too(admin, as_admin):
    parent = by_token(person("bob"), Scope())
    child = minted_with(parent)
    grandchild = minted_with(child)
    assert as_admin.delete(f"/api/v1/users/bob/tokens/{row_of(child).pk}/").status_code == 204
    assert live(parent, child, grandchild) == [True, False, False]


@pytest.mark.django_db(transaction=True)
def test_they_end_at_the_kubernetes_door_too(admin):
    from deploy.config.kube import application

    door, stolen = application(), by_token(admin, Scope())
    child = minted_with(stolen)
    assert asyncio.run(status_of(door, child.text, "GET", "/api/v1/nodes")) == 200
    access.revoke(admin, row_of(stolen).pk, now=timezone.now())
    assert asyncio.run(status_of(door, child.text, "GET", "/api/v1/nodes")) == 401
    connection.close()


def test_lists_say_which_token_or_user_minted_each(admin, as_admin):
    person("bob")
    child = minted_with(as_admin, "users/bob/tokens/")
    rows = as_admin.get("/api/v1/users/bob/tokens/").json()["results"]
    assert [(row["parent_id"], row["minted_by"]) for row in rows] == [(row_of(child).parent_id, "ada")]
    by_hand = {row["id"]: row for row in as_admin.get("/api/v1/tokens/").json()["results"]}[row_of(child).parent_id]
    assert (by_hand["parent_id"], by_hand["minted_by"]) == (None, None)


def test_a_token_of_long_ago_minted_many_generations_which_end_in_few_queries(admin):
    root, _ = access.mint(admin, "root", life=None, now=timezone.now())
    parent = root
    for number in range(60):
        parent, _ = access.mint(admin, f"t{number}", life=None, now=timezone.now(), by=parent)
    with CaptureQueriesContext(connection) as queries:
        assert token_tree.revoke(root.pk, now=timezone.now()) == 61
    assert len(queries) <= 8 and not Token.objects.filter(revoked_at__isnull=True).exists()


def test_a_revoked_token_mints_none_although_its_request_was_let_in_before(admin):
    parent, text = access.mint(admin, "root", life=None, now=timezone.now())
    let_in = access.verify(text, now=timezone.now())
    token_tree.revoke(parent.pk, now=timezone.now())
    with pytest.raises(Forbidden, match="revoked"):
        access.mint(admin, "late", life=None, now=timezone.now(), by=let_in)
    assert Token.objects.count() == 1


def browser(name: str) -> APIClient:
    signed_in = APIClient()
    signed_in.force_login(grants.user(name))
    return signed_in


def test_a_new_password_ends_what_a_session_of_before_minted_for_others(admin, as_admin):
    """Of an admin whose password was stolen; the pipelines of other admins go on."""
    for name in ("bob", "ci"):
        person(name, superuser=name == "bob")
    thief = browser("bob")
    left = minted_with(thief, "users/ci/tokens/")
    further, honest = minted_with(left), minted_with(as_admin, "users/ci/tokens/")
    cli_logins.make_code(
        grants.user("bob"), challenge="a" * 43, name="cli", life=timedelta(hours=1), now=timezone.now()
    )
    users.set_password("bob", NEW, now=timezone.now())
    assert live(left, further, honest) == [False, False, True]
    assert live(thief) == [False] and not LoginCode.objects.exists()


@pytest.mark.parametrize("act", ["password", "disable"])
def test_a_request_of_a_session_that_was_let_in_before_its_user_was_stopped_mints_none(admin, act):
    bob = person("bob")
    users.set_password("bob", NEW, now=timezone.now()) if act == "password" else users.disable("bob")
    with pytest.raises(Forbidden, match="signed out"):
        access.mint(bob, "late", life=None, now=timezone.now(), minted_by=bob)
    assert not Token.objects.exists()


def test_an_admin_ends_all_that_a_user_without_a_password_left_behind(admin, as_admin):
    """As of the company's accounts, whose password is not here: sessions end as well."""
    bob = person("bob", superuser=True)
    bob.set_unusable_password()
    bob.save()
    person("ci")
    session = browser("bob")
    left, own = minted_with(session, "users/ci/tokens/"), client_of(bob)
    answer = as_admin.post("/api/v1/users/bob/revoke-tokens/")
    assert answer.status_code == 200 and answer.json() == {"revoked": 2}
    assert live(left, own, session, as_admin) == [False, False, False, True]
    assert AuditEntry.objects.filter(verb="revoke").latest("pk").name == "bob: all, 2 in number"
    session.force_login(grants.user("bob"))
    assert live(session) == [True]


def test_only_fleet_admins_end_those_of_others(as_editor, admin):
    assert as_editor.post("/api/v1/users/ada/revoke-tokens/").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_token_that_is_being_minted_while_its_parent_is_revoked_ends_too(admin):
    """On PostgreSQL the revocation waits for the parent's row, and reads once more; SQLite has one writer at a time."""
    for _ in range(6):
        parent, _ = access.mint(admin, "root", life=None, now=timezone.now())
        ready = threading.Barrier(4)

        def mint(by: Token = parent, ready: threading.Barrier = ready) -> Any:
            try:
                ready.wait()
                row = by
                for number in range(3):
                    row, _ = access.mint(admin, f"t{number}", life=None, now=timezone.now(), by=row)
            except Forbidden:
                return None
            finally:
                connection.close()

        def revoke(token_id: int = parent.pk, ready: threading.Barrier = ready) -> Any:
            try:
                ready.wait()
                token_tree.revoke(token_id, now=timezone.now())
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as threads:
            for deed in [threads.submit(each) for each in (mint, mint, revoke, revoke)]:
                deed.result()
        assert not Token.objects.filter(revoked_at__isnull=True).exists()
