"""The audit's chain while others write, link, delete and verify: on PostgreSQL all of them at once, on SQLite in turns."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from fleet.models import AuditChain, AuditEntry
from fleet.services.auditing import audit, audit_chain
from fleet.services.clusters import clusters
from tests.support.between import after_each_look_at, elsewhere

pytestmark = pytest.mark.django_db(transaction=True)
LATER = timezone.now() + timedelta(days=1)
WRITERS, EACH = 3, 40


def note(name: str) -> None:
    audit.note("ada", door="rest", address="127.0.0.1", request="GET /", verb="read", kind="Secret", name=name)


def test_the_chain_is_whole_after_writers_linkers_and_retention_at_once():
    def write(number: int) -> None:
        try:
            for i in range(EACH):
                note(f"{number}-{i}")
                audit_chain.link_new(LATER)
                if i % 10 == 9:
                    audit_chain.forget(LATER, delivered=5 * (i + 1))
                    assert not audit_chain.verify().fault
        finally:
            connection.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        for result in [pool.submit(write, number) for number in range(WRITERS)]:
            result.result()
    audit_chain.link_new(LATER)
    result = audit_chain.verify()
    assert not result.fault and result.last == WRITERS * EACH and result.unlinked == 0
    assert AuditEntry.objects.count() == result.lines == result.last - AuditChain.objects.get().forgotten_seq


@pytest.mark.parametrize("deed", ["link", "forget"])
def test_it_reports_no_fault_when_the_chain_grows_or_shrinks_while_it_is_verified(deed):
    for name in "abc":
        note(name)
    audit_chain.link_new(LATER)
    note("d")
    deeds = {"link": lambda: audit_chain.link_new(LATER), "forget": lambda: audit_chain.forget(LATER, 2)}
    with after_each_look_at("fleet_auditchain", deeds[deed]):
        assert audit_chain.verify() == audit_chain.Verification(3, 3, "", 1)
    assert not audit_chain.verify().fault


def test_a_request_that_ends_after_its_line_was_given_up_changes_nothing_of_the_chain(north):
    with audit.asking(lambda: "ada", door="rest", address="127.0.0.1", request="PATCH /"):
        clusters.set_labels(north, {"a": "b"}, by="ada", now=timezone.now())
        elsewhere(lambda: audit_chain.link_new(LATER))
    line = AuditEntry.objects.get()
    assert line.seq == 1 and not line.complete and not audit_chain.verify().fault


def test_retention_deletes_in_batches_and_the_chain_is_whole_after_each(monkeypatch):
    monkeypatch.setattr(audit_chain, "_AT_ONCE", 3)
    monkeypatch.setattr(audit_chain, "_BATCHES_FORGOTTEN", 2)
    for number in range(10):
        note(f"n{number}")
    audit_chain.link_new(LATER)
    kept = []
    while audit_chain.forget(LATER, None):
        kept.append(AuditEntry.objects.count())
        assert not audit_chain.verify().fault
    assert kept == [4, 0]


def test_retention_that_is_stopped_between_two_batches_leaves_a_whole_chain(monkeypatch):
    monkeypatch.setattr(audit_chain, "_AT_ONCE", 3)
    for number in range(10):
        note(f"n{number}")
    audit_chain.link_new(LATER)
    seen = []

    def stop_at_second(row: AuditChain) -> None:
        seen.append(row)
        if len(seen) == 2:
            raise KeyboardInterrupt
        save(row)

    save = audit_chain._save
    monkeypatch.setattr(audit_chain, "_save", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        audit_chain.forget(LATER, None)
    assert audit_chain.verify() == audit_chain.Verification(7, 10)
