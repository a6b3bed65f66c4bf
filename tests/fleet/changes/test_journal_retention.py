"""The oldest changes are forgotten in batches, and the newest one stays."""

import pytest
from django.utils import timezone

from fleet.changes import journal
from fleet.models import JournalEntry

pytestmark = pytest.mark.django_db


def test_the_oldest_go_in_batches_and_versions_never_go_back(monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(journal, "COMPACTED_AT_ONCE", 4)
    change = journal.Change("Cluster", "", "north", "uid", journal.Action.MODIFIED)
    versions = journal.append([change] * 13, timezone.now())
    with django_assert_num_queries(1 + 2 * 3 + 1):
        assert journal.compact(3) == 10
    assert sorted(JournalEntry.objects.values_list("version", flat=True)) == sorted(versions)[-3:]
    assert journal.compact(0) == 2 and journal.tip() == max(versions)
