"""The audit's chain: whatever is done to the lines behind Convoy's back is found, and named."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from fleet.models import AuditChain, AuditEntry
from fleet.services.auditing import audit, audit_chain

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LATER = NOW + timedelta(seconds=10)


def note(name: str, at=None) -> None:
    audit.note("ada", door="rest", address="127.0.0.1", request="GET /", verb="read", kind="Secret", name=name)
    AuditEntry.objects.filter(name=name).update(at=at or NOW)


@pytest.fixture
def chain(db):
    for name in "abcde":
        note(name)
    assert audit_chain.link_new(LATER) == 5
    assert audit_chain.verify() == audit_chain.Verification(5, 5)


def line(name: str):
    return AuditEntry.objects.filter(name=name)


DEEDS = {
    "a line is changed": (lambda: line("c").update(actor="eve"), "line 3 of the chain"),
    "its time is changed": (lambda: line("c").update(at=LATER), "line 3 of the chain"),
    "what it shows is changed": (lambda: line("c").update(after={"a": 1}), "line 3 of the chain"),
    "a line is removed": (lambda: line("c").delete(), "lines 3 to 3 of the chain are missing"),
    "the end is cut off": (lambda: line("e").delete(), "lines 5 to 5 of the chain are missing"),
    "the beginning is cut off": (lambda: line("a").delete(), "lines 1 to 1 of the chain are missing"),
    "all is removed": (lambda: AuditEntry.objects.all().delete(), "lines 1 to 5"),
    "a line is taken out of the chain": (lambda: line("c").update(seq=None, digest=""), "lines 3 to 3"),
    "the end is set back": (
        lambda: (line("e").delete(), AuditChain.objects.update(seq=4, digest=line("d").get().digest)),
        "the row that says where the chain ends",
    ),
    "the beginning is set forward": (
        lambda: (line("a").delete(), AuditChain.objects.update(forgotten_seq=1)),
        "the row that says where the chain ends",
    ),
    "the end's row is removed": (lambda: AuditChain.objects.all().delete(), "there is no chain"),
    "a line is put behind the end": (lambda: (note("f"), line("f").update(seq=6, digest="0" * 64)), "behind the end"),
}


@pytest.mark.parametrize(("deed", "fault"), DEEDS.values(), ids=DEEDS)
def test_it_names_what_was_tampered_with(chain, deed, fault):
    deed()
    assert fault in audit_chain.verify().fault
    with pytest.raises(CommandError, match="tampered with"):
        call_command("audit", "verify")


def test_two_lines_that_change_places_are_found(chain):
    first, second = line("b").get(), line("c").get()
    line("b").update(seq=None)
    line("c").update(seq=first.seq, digest=first.digest)
    line("b").update(seq=second.seq, digest=second.digest)
    assert audit_chain.verify().fault


def test_lines_are_linked_as_they_become_visible_not_by_their_number(chain):
    note("late")
    line("late").update(id=-5)
    assert audit_chain.link_new(LATER) == 1 and audit_chain.verify() == audit_chain.Verification(6, 6)


def test_a_line_that_is_not_complete_waits_until_its_process_is_given_up(chain):
    note("slow")
    line("slow").update(complete=False)
    assert audit_chain.link_new(LATER) == 0 and audit_chain.verify().unlinked == 1
    assert audit_chain.link_new(NOW + timedelta(minutes=11)) == 1


def test_a_line_that_was_linked_is_not_completed_any_more(chain):
    audit.ended(line("c").get(), audit.Outcome.DONE)
    assert not audit_chain.verify().fault


def test_retention_moves_the_beginning_and_the_chain_stays_whole(chain):
    assert audit_chain.forget(NOW, None) == 0
    for name in "ab":
        AuditEntry.objects.filter(name=name).update(at=NOW - timedelta(days=1))
    note("old, and linked last", at=NOW - timedelta(days=1))
    AuditChain.objects.all().delete()
    AuditEntry.objects.update(seq=None, digest="")
    assert audit_chain.link_new(LATER) == 6
    assert audit_chain.forget(NOW - timedelta(hours=1), 1) == 1
    assert audit_chain.forget(NOW - timedelta(hours=1), None) == 1
    assert audit_chain.verify() == audit_chain.Verification(4, 6)
    assert audit_chain.forget(LATER, None) == 4 and audit_chain.verify() == audit_chain.Verification(0, 6)
    note("f")
    audit_chain.link_new(LATER)
    assert audit_chain.verify() == audit_chain.Verification(1, 7)


def test_a_former_key_still_verifies_and_another_does_not(chain, settings):
    first = settings.CONVOY_ENCRYPTION_KEYS
    settings.CONVOY_ENCRYPTION_KEYS = ["new", *first]
    note("f")
    audit_chain.link_new(LATER)
    assert not audit_chain.verify().fault
    settings.CONVOY_ENCRYPTION_KEYS = ["stranger's"]
    assert audit_chain.verify().fault


def test_many_lines_are_linked_in_batches(db, monkeypatch):
    monkeypatch.setattr(audit_chain, "_AT_ONCE", 3)
    for number in range(10):
        note(f"n{number}")
    assert audit_chain.link_new(LATER) == 10 and audit_chain.verify() == audit_chain.Verification(10, 10)
