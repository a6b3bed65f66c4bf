"""What an investigator looks for first: sign-ins, tokens, users, reads of Secrets and logs; and nothing is done unwritten."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from fleet.models import AuditEntry, Grant, Token
from fleet.services.auditing import audit_chain
from fleet.services.authorization import access
from tests.jobs.api.builders import submitted, url
from tests.support.people import person

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"


def sign_in(name: str, password: str, client: Client | None = None):
    body = json.dumps({"username": name, "password": password})
    return (client or Client()).post("/api/v1/session/", body, content_type="application/json")


def lines(**wanted):
    rows = AuditEntry.objects.filter(**wanted).order_by("pk")
    return [(row.actor, row.verb, row.kind, row.name, row.outcome) for row in rows]


def test_signing_in_and_out_and_failing_to_is_written_down(editor):
    client = Client()
    sign_in("vera", "wrong")
    sign_in("a password typed too early", PASSWORD)
    assert sign_in("vera", PASSWORD, client).status_code == 200
    client.delete("/api/v1/session/")
    assert lines() == [
        ("", "sign-in", "User", "vera", "refused"),
        ("", "sign-in", "User", "(unknown)", "refused"),
        ("vera", "sign-in", "User", "vera", "done"),
        ("vera", "sign-out", "User", "vera", "done"),
    ]
    assert set(AuditEntry.objects.values_list("address", "door")) == {("127.0.0.1", "console")}


def test_a_lock_out_is_written_down(editor):
    for _ in range(11):
        sign_in("vera", "wrong")
    assert ("", "lock-out", "User", "vera", "refused") in lines()
    assert AuditEntry.objects.latest("pk").message == "locked out"


def test_a_sign_in_by_a_link_is_written_down_without_the_link(editor):
    link = access.make_signin_link(editor, now=timezone.now())
    assert Client().post(link).status_code == 302
    assert lines() == [("vera", "sign-in", "User", "vera", "done")]
    assert link.split("/")[2] not in str(AuditEntry.objects.values())


def test_one_s_own_tokens_are_written_down(as_editor):
    made = as_editor.post("/api/v1/tokens/", {"name": "ci"}, format="json").json()
    as_editor.delete(f"/api/v1/tokens/{made['id']}/")
    assert lines() == [
        ("vera", "mint", "Token", "vera: ci", "done"),
        ("vera", "revoke", "Token", f"vera: {made['id']}", "done"),
    ]
    assert made["token"] not in str(AuditEntry.objects.values())


def test_users_roles_and_the_tokens_of_others_are_written_down_once(as_admin):
    post = as_admin.post
    post("/api/v1/users/", {"username": "bob"}, format="json")
    grant = {"user": "bob", "role": "editor", "namespace": "vision"}
    made = post("/api/v1/grants/", grant, format="json").json()
    as_admin.delete(f"/api/v1/grants/{made['id']}/")
    post("/api/v1/users/bob/tokens/", {"name": "ci"}, format="json")
    post("/api/v1/users/bob/disable/")
    assert [line[1:4] for line in lines(actor="ada")] == [
        ("create", "User", "bob"),
        ("grant", "Grant", "bob: editor in vision"),
        ("revoke", "Grant", "bob: editor in vision"),
        ("mint", "Token", "bob: ci"),
        ("disable", "User", "bob"),
    ]


def test_commands_on_the_machine_are_written_down(editor):
    call_command("mint_token", user="vera", name="ci")
    call_command("signin_link", user="vera")
    assert [line[1:4] for line in lines(door="command", actor__startswith="system")] == [
        ("mint", "Token", "vera: ci"),
        ("mint", "SigninLink", "vera"),
    ]


@pytest.fixture
def full(transactional_db):
    """A database that takes no line of the audit any more, when it is called."""
    create = "CREATE TRIGGER no_room BEFORE INSERT ON fleet_auditentry "
    if connection.vendor == "postgresql":
        body = "BEGIN RAISE EXCEPTION 'disk full'; END"
        before = f"CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
        fill = [before, f"{create} FOR EACH ROW EXECUTE FUNCTION no_room()"]
        empty = ["DROP TRIGGER no_room ON fleet_auditentry", "DROP FUNCTION no_room"]
    else:
        fill, empty = [f"{create} BEGIN SELECT RAISE(ABORT, 'disk full'); END"], ["DROP TRIGGER no_room"]

    def execute(statements):
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    yield lambda: execute(fill)
    execute(empty)


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_written_down_is_not_done(full, admin, as_admin, editor, as_editor):
    tokens = Token.objects.count()
    full()
    as_admin.raise_request_exception = as_editor.raise_request_exception = False
    anonymous = Client(raise_request_exception=False)
    before = [Grant.objects.count(), get_user_model().objects.count(), tokens]
    codes = [
        as_admin.post("/api/v1/users/", {"username": "bob"}, format="json").status_code,
        as_admin.post(
            "/api/v1/grants/", {"user": "vera", "role": "viewer", "namespace": ""}, format="json"
        ).status_code,
        as_editor.post("/api/v1/tokens/", {"name": "ci"}, format="json").status_code,
        as_admin.post("/api/v1/users/vera/disable/").status_code,
        sign_in("vera", PASSWORD, anonymous).status_code,
    ]
    assert all(code >= 500 for code in codes), codes
    assert [Grant.objects.count(), get_user_model().objects.count(), Token.objects.count()] == before
    assert get_user_model().objects.get(username="vera").is_active
    assert not anonymous.get("/api/v1/session/").json()["signed_in"]
    with pytest.raises(DatabaseError):
        call_command("mint_token", user="vera", name="ci")
    assert Token.objects.count() == tokens


def test_an_admin_exports_the_chain_in_order_and_verifies_it(as_admin, as_viewer, settings, monkeypatch):
    for number in range(5):
        as_admin.post("/api/v1/users/", {"username": f"u{number}"}, format="json")
    audit_chain.link_new(timezone.now() + timedelta(hours=1))
    text = as_admin.get("/api/v1/audit/export/").content.decode()
    found = [json.loads(line) for line in text.splitlines()]
    assert [line["seq"] for line in found] == [1, 2, 3, 4, 5] and found[0]["name"] == "u0"
    behind = as_admin.get("/api/v1/audit/export/?after=3").content.decode()
    assert behind.splitlines() == text.splitlines()[3:]
    assert as_admin.get("/api/v1/audit/export/?after=x").status_code == 422
    assert as_admin.get("/api/v1/audit/verification/").json()["fault"] == ""
    for path in ("export", "verification"):
        assert as_viewer.get(f"/api/v1/audit/{path}/").status_code == 403
    AuditEntry.objects.filter(name="u2").update(actor="eve")
    assert "line 3" in as_admin.get("/api/v1/audit/verification/").json()["fault"]


def test_reading_a_job_s_log_is_written_down(as_viewer, north):
    job = submitted("llama", "speech")
    as_viewer.get(url(job, "logs/"))
    assert lines(verb="read") == [("sam", "read", "PyTorchJob/log", "llama", "done")]


def test_a_password_that_was_never_right_belongs_to_nobody(db):
    person("bob")
    sign_in("bob", "wrong")
    assert lines()[0][0] == ""
