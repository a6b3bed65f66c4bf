"""The audit over REST: found by who, what and when; whole one at a time; nobody's to change."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import AuditEntry

pytestmark = pytest.mark.django_db
AUDIT = "/api/v1/audit/"


@pytest.fixture
def lines(db):
    now = timezone.now()
    for i in range(12):
        AuditEntry.objects.create(
            at=now - timedelta(hours=i), actor="ada" if i % 2 else "bob", door="rest", verb="suspend" if i % 3 else "create",
            kind="PyTorchJob", namespace="vision", name=f"job-{i}", outcome="done", before=None, after={"state": "Suspended"},
        )  # fmt: skip


def names(client, **wanted):
    return [each["name"] for each in client.get(AUDIT, wanted).data["results"]]


def test_it_shows_the_newest_first_in_pages(as_admin, lines):
    assert names(as_admin, page_size=2) == ["job-11", "job-10"]
    assert as_admin.get(AUDIT).data["count"] == 12


def test_it_is_found_by_actor_verb_object_and_time(as_admin, lines):
    assert set(names(as_admin, actor="ada", verb="create")) == {"job-3", "job-9"}
    assert names(as_admin, kind="pytorchjob", namespace="vision", name="job-4") == ["job-4"]
    since = timezone.now() - timedelta(hours=1, minutes=30)
    assert set(names(as_admin, since=since.isoformat())) == {"job-0", "job-1"}
    assert len(names(as_admin, until=since.isoformat())) == 10
    assert as_admin.get(AUDIT, {"since": "yesterday"}).status_code == 422


def test_it_shows_one_line_whole(as_admin, lines):
    [line] = as_admin.get(AUDIT, {"name": "job-5"}).data["results"]
    assert "after" not in line
    assert as_admin.get(f"{AUDIT}{line['id']}/").data["after"] == {"state": "Suspended"}


def test_nobody_changes_it(as_admin, lines):
    [line] = as_admin.get(AUDIT, {"name": "job-5"}).data["results"]
    for method in ("put", "patch", "delete"):
        assert getattr(as_admin, method)(f"{AUDIT}{line['id']}/").status_code == 405
