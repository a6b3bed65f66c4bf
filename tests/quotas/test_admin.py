"""Django's pages of quotas: who sees them, queues held from their list, and leads named by who may change the whole tree."""

import json
from datetime import UTC, datetime

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from fleet.models import AuditEntry, Grant
from quotas.models import Queue, QuotaGrant
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.people import person

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = ["quotatree", "queue", "quotarevision", "quotagrant"]


@pytest.fixture
def staff(db):
    """Signed in as somebody with one role everywhere, or none."""
    trees.apply(manifest(quota("root", 9, 9, quota("a"))), by="test", now=NOW)

    def signed_in(name, role=None):
        user = person(name, *([(role, "")] if role else []))
        get_user_model().objects.filter(pk=user.pk).update(is_staff=True)
        client = Client()
        client.force_login(user, "fleet.api.sign_in.passwords.PasswordBackend")
        return client

    return signed_in


def act(client, action):
    queue = Queue.objects.get(path="root/a")
    client.post("/admin/quotas/queue/", {"action": action, "_selected_action": queue.pk}, follow=True)
    return Queue.objects.get(pk=queue.pk).state


@pytest.mark.parametrize("page", PAGES)
def test_it_shows_its_pages_to_who_may_read_the_fleet_and_to_nobody_else(staff, page):
    assert staff("vic", Grant.Role.VIEWER).get(f"/admin/quotas/{page}/").status_code == 200
    assert staff("nobody").get(f"/admin/quotas/{page}/").status_code == 403


def test_it_loads_the_editor_of_the_console_by_the_names_of_its_build(staff, settings, tmp_path):
    files = {"file": "assets/editor-1.js", "css": ["assets/editor-2.css"], "imports": ["_page.js"]}
    chunks = {"src/quotaEditor.tsx": files, "_page.js": {"file": "assets/page-3.js", "css": ["assets/page-4.css"]}}
    (tmp_path / ".vite").mkdir()
    (tmp_path / ".vite" / "manifest.json").write_text(json.dumps(chunks))
    settings.CONSOLE_DIST = tmp_path
    text = staff("vic", Grant.Role.VIEWER).get("/admin/quotas/quotatree/").content.decode()
    assert '<script type="module" src="/assets/editor-1.js"></script>' in text
    assert text.index("/assets/page-4.css") < text.index("/assets/editor-2.css")
    assert '<div id="quota-editor"></div>' in text


def test_it_says_that_the_console_is_not_built(staff, settings, tmp_path):
    settings.CONSOLE_DIST = tmp_path
    text = staff("vic", Grant.Role.VIEWER).get("/admin/quotas/quotatree/").content.decode()
    assert "The console is not built" in text and '<script type="module" src=""' not in text


@pytest.mark.parametrize(
    ("action", "state"), [("hold", "Held"), ("drain", "Draining"), ("stop", "Stopped"), ("reopen", "Open")]
)
def test_it_changes_queues_from_their_list(staff, action, state):
    assert act(staff("quinn", Grant.Role.QUOTA_ADMIN), action) == state


def test_it_holds_no_queue_for_a_viewer(staff):
    assert act(staff("vic", Grant.Role.VIEWER), "hold") == "Open"


def test_it_lets_quota_admins_name_leads(staff):
    lead = person("lea")
    given = {"user": lead.pk, "path": "root/a"}
    assert staff("vic", Grant.Role.VIEWER).post("/admin/quotas/quotagrant/add/", given).status_code == 403
    admin = staff("quinn", Grant.Role.QUOTA_ADMIN)
    assert admin.post("/admin/quotas/quotagrant/add/", {**given, "path": "a"}).status_code == 200
    assert not QuotaGrant.objects.exists()
    assert admin.post("/admin/quotas/quotagrant/add/", given).status_code == 302
    assert str(QuotaGrant.objects.get()) == "lea: below root/a"
    admin.post(f"/admin/quotas/quotagrant/{QuotaGrant.objects.get().pk}/delete/", {"post": "yes"})
    assert not QuotaGrant.objects.exists()
    told = AuditEntry.objects.filter(kind="QuotaGrant").order_by("id").values_list("actor", "verb", "name")
    assert list(told) == [("quinn", "grant", "lea: below root/a"), ("quinn", "revoke", "lea: below root/a")]
