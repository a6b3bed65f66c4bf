"""Django's pages of quotas: who sees them, queues held from their list, and leads named by who may change the whole tree."""

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
        client.force_login(user, "django.contrib.auth.backends.ModelBackend")
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


def test_it_has_no_script_and_no_style_of_its_own_in_the_page(staff):
    text = staff("vic", Grant.Role.VIEWER).get("/admin/quotas/quotatree/").content.decode()
    body = text[text.index('<div class="q-page">') : text.index('<div id="q-history">')]
    assert "<script" not in body and "style=" not in body and "onclick" not in body


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
