"""Roles and other people's tokens over REST: given, listed, taken back; by fleet admins alone, and written down."""

import pytest
from rest_framework.test import APIClient

from fleet.models import AuditEntry, Grant
from fleet.services.authorization import access
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
GRANTS = "/api/v1/grants/"


@pytest.fixture
def bob(db):
    return person("bob")


def give(client, role="editor", namespace="vision", user="bob"):
    return client.post(GRANTS, {"user": user, "role": role, "namespace": namespace}, format="json")


def test_it_gives_a_role_once_and_takes_it_back(as_admin, bob):
    made = give(as_admin)
    assert (made.status_code, made.data["user"], give(as_admin).data["id"]) == (201, "bob", made.data["id"])
    assert as_admin.get("/api/v1/users/?search=bob").data["results"][0]["roles"] == [
        {"id": made.data["id"], "role": "editor", "namespace": "vision"}
    ]
    assert as_admin.delete(f"{GRANTS}{made.data['id']}/").status_code == 204
    assert not Grant.objects.exists()
    assert as_admin.delete(f"{GRANTS}{made.data['id']}/").status_code == 404
    lines = [(each.verb, each.name) for each in AuditEntry.objects.filter(outcome="done").order_by("pk")]
    assert lines == [("grant", "bob: editor in vision"), ("revoke", "bob: editor in vision")]


@pytest.mark.parametrize(
    ("role", "namespace", "user", "status"),
    [
        ("king", "", "bob", 422),
        ("fleet-admin", "vision", "bob", 422),
        ("quota-admin", "vision", "bob", 422),
        ("editor", "Not A Name", "bob", 422),
        ("editor", "vision", "nobody", 404),
    ],
)
def test_it_refuses_grants_that_cannot_be(as_admin, bob, role, namespace, user, status):
    assert give(as_admin, role, namespace, user).status_code == status
    assert not Grant.objects.exists()


def test_it_keeps_the_last_fleet_admin(bob):
    boss = person("boss", (Grant.Role.FLEET_ADMIN, ""))
    client, only = client_of(boss), Grant.objects.get()
    assert client.delete(f"{GRANTS}{only.pk}/").status_code == 409
    give(client, "fleet-admin", "")
    assert client.delete(f"{GRANTS}{only.pk}/").status_code == 204


def test_it_makes_shows_and_revokes_tokens_for_others(as_admin, bob):
    give(as_admin, "viewer", "vision")
    made = as_admin.post("/api/v1/users/bob/tokens/", {"name": "pipeline", "expires_in_s": 60}, format="json")
    assert made.status_code == 201
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.data['token']}")
    assert client.get("/api/v1/me/").data["username"] == "bob"
    [listed] = as_admin.get("/api/v1/users/bob/tokens/").data["results"]
    assert (listed["name"], "token" in listed) == ("pipeline", False)
    assert as_admin.delete(f"/api/v1/users/ada/tokens/{listed['id']}/").status_code == 404
    assert as_admin.delete(f"/api/v1/users/bob/tokens/{listed['id']}/").status_code == 204
    assert client.get("/api/v1/me/").status_code == 401


def test_it_is_for_fleet_admins_alone(as_editor, as_viewer, bob):
    quotas = client_of(person("quinn", (Grant.Role.QUOTA_ADMIN, "")))
    for client in (as_editor, as_viewer, quotas):
        for path in (GRANTS, "/api/v1/users/", "/api/v1/users/bob/tokens/", "/api/v1/audit/"):
            assert client.get(path).status_code == 403
        assert give(client).status_code == 403


def test_a_fleet_admin_of_one_namespace_is_none_of_the_fleet():
    """As a row made past the service would have it."""
    user = person("odd", (Grant.Role.FLEET_ADMIN, "vision"))
    assert access.may(user, "apply", "Job", "vision")
    assert not access.may(user, "join", "Cluster") and not access.may(user, access.READ, "Grant")
