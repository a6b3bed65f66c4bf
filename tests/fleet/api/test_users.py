"""Users over REST: made, disabled, enabled, given passwords; by fleet admins alone, written down, and never the last admin."""

import json

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.models import AuditEntry, Grant
from fleet.services.authorization import access
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
USERS = "/api/v1/users/"
PASSWORD = "correct horse battery"


def post(client, path="", **body):
    return client.post(USERS + path, body, format="json")


def signs_in(name, password=PASSWORD):
    body = json.dumps({"username": name, "password": password})
    return Client().post("/api/v1/session/", body, content_type="application/json").status_code == 200


def test_a_new_user_signs_in_and_may_nothing(as_admin):
    assert post(as_admin, username="bob", password=PASSWORD).status_code == 201
    assert signs_in("bob")
    bob = get_user_model().objects.get(username="bob")
    assert (access.roles(bob), bob.is_staff, bob.is_superuser) == ((), False, False)


def test_a_user_without_a_password_cannot_sign_in_by_one(as_admin):
    assert post(as_admin, username="ci").status_code == 201
    assert not signs_in("ci", "")
    assert not get_user_model().objects.get(username="ci").has_usable_password()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"username": "bob", "password": "short"}, "password"),
        ({"username": "bob", "password": "password1234"}, "password"),
        ({"username": "no spaces", "password": PASSWORD}, "username"),
        ({"username": "x" * 151, "password": PASSWORD}, "username"),
        ({"username": "", "password": PASSWORD}, "username"),
        ({"username": "a\tb", "password": PASSWORD}, "username"),
    ],
)
def test_it_names_what_is_wrong_with_a_new_user(as_admin, body, field):
    answer = post(as_admin, **body)
    assert answer.status_code in (400, 422)
    assert field in answer.content.decode()
    assert not get_user_model().objects.filter(username=body["username"]).exists()


def test_a_name_is_taken_once(as_admin):
    assert [post(as_admin, username="bob").status_code for _ in range(2)] == [201, 409]


def test_a_disabled_user_is_out_at_once_and_comes_back(as_admin):
    post(as_admin, username="bob", password=PASSWORD)
    bob = get_user_model().objects.get(username="bob")
    Grant.objects.create(user=bob, role="viewer", namespace="vision")
    by_token, by_session = client_of(bob), Client()
    by_session.force_login(bob, "fleet.api.sign_in.passwords.PasswordBackend")
    assert post(as_admin, "bob/disable/").data["active"] is False
    assert by_token.get("/api/v1/me/").status_code == 401
    assert by_session.get("/api/v1/me/").status_code in (401, 403)
    assert not signs_in("bob")
    assert post(as_admin, "bob/enable/").data["active"] is True
    assert signs_in("bob")


def test_a_new_password_ends_what_the_old_one_opened(as_admin):
    post(as_admin, username="bob", password=PASSWORD)
    bob = get_user_model().objects.get(username="bob")
    by_token, by_session = client_of(bob), Client()
    by_session.force_login(bob, "fleet.api.sign_in.passwords.PasswordBackend")
    assert post(as_admin, "bob/password/", password="another horse battery").status_code == 204
    assert (signs_in("bob"), signs_in("bob", "another horse battery")) == (False, True)
    assert by_token.get("/api/v1/me/").status_code == 401
    assert by_session.get("/api/v1/me/").status_code in (401, 403)
    assert post(as_admin, "bob/password/", password="short").status_code == 422


def test_the_last_fleet_admin_cannot_be_disabled(db):
    boss = person("boss", (Grant.Role.FLEET_ADMIN, ""))
    client = client_of(boss)
    assert post(client, "boss/disable/").status_code == 409
    person("second", (Grant.Role.FLEET_ADMIN, ""))
    get_user_model().objects.filter(username="second").update(is_active=False)
    assert post(client, "boss/disable/").status_code == 409
    get_user_model().objects.filter(username="second").update(is_active=True)
    assert post(client, "boss/disable/").status_code == 200


@pytest.mark.parametrize("path", ["", "sam/disable/", "sam/enable/", "sam/password/"])
@pytest.mark.parametrize("role", ["quota-admin", "editor", "viewer"])
def test_only_a_fleet_admin_does_this(viewer, path, role):
    client = client_of(person("eve", (role, "")))
    assert post(client, path, username="x", password=PASSWORD).status_code == 403
    assert get_user_model().objects.get(username="sam").is_active


def test_a_user_who_is_not_there_is_said_so(as_admin):
    deeds = ("disable", "enable", "password")
    assert [post(as_admin, f"zoe/{deed}/", password=PASSWORD).status_code for deed in deeds] == [404] * 3


def test_all_of_it_is_in_the_audit_without_a_password(as_admin):
    post(as_admin, username="bob", password=PASSWORD)
    for deed in ("disable", "disable", "enable"):
        post(as_admin, f"bob/{deed}/")
    post(as_admin, "bob/password/", password="another horse battery")
    rows = AuditEntry.objects.filter(kind="User", outcome="done").order_by("pk")
    assert [(row.actor, row.verb, row.name) for row in rows] == [
        ("ada", verb, "bob") for verb in ("create", "disable", "enable", "set-password")
    ]
    assert "horse" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(("deed", "body"), [("disable", {}), ("password", {"password": "another horse battery"})])
def test_a_sign_in_link_from_before_opens_nothing(as_admin, deed, body):
    link = access.make_signin_link(person("bob"), now=timezone.now())
    post(as_admin, f"bob/{deed}/", **body)
    with pytest.raises(InvalidInput):
        access.find_signin_link_user(link.split("/")[2], now=timezone.now())
