"""Secrets at rest come to the first key, whatever happens on the way; both keys read everything until then."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.db.models import F, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from deploy.config.kube import application
from fleet.api.http import problems
from fleet.errors import Conflict, InvalidInput
from fleet.models import AuditEntry, Cluster, MemberCredentials, SecondFactor
from fleet.models.encrypted import SecretUnreadable
from fleet.services.authorization import access
from fleet.services.operations import key_rotation
from jobs.models import Dependent
from tests.support.asgi_door import Reader
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
NEW = Fernet.generate_key().decode()
URL = "/api/v1/keys/rotation/"


@pytest.fixture
def old(settings, north, editor) -> str:
    """Secrets of the old key, with the new one in front of it now."""
    for number in range(7):
        Dependent.objects.create(
            kind="Secret", namespace="a", name=f"s{number}", manifest={"data": number}, created_at=timezone.now()
        )
    SecondFactor.objects.create(user=editor, secret="ABCD")
    MemberCredentials.objects.create(cluster=north, joined={"token": "former"})
    [key] = settings.CONVOY_ENCRYPTION_KEYS
    settings.CONVOY_ENCRYPTION_KEYS = [NEW, key]
    return key


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(key_rotation, "AT_ONCE", 3)


def rotate(begin: str = "", batches: int = 100) -> tuple[int, int, str]:
    looked_at = encrypted = 0
    for _ in range(batches):
        batch = key_rotation.rotate_batch(begin)
        looked_at, encrypted, begin = looked_at + batch.looked_at, encrypted + batch.encrypted, batch.next
        if not begin:
            break
    return looked_at, encrypted, begin


def secrets() -> list[object]:
    factors = SecondFactor.objects.values_list("secret", flat=True)
    return [
        *Cluster.objects.values_list("access", flat=True),
        *factors,
        *MemberCredentials.objects.values_list("joined", flat=True),
        *Dependent.objects.values_list("manifest", flat=True),
    ]


def test_the_old_key_can_be_taken_away_when_it_is_through(old, settings):
    before, version = secrets(), Cluster.objects.get().resource_version
    assert rotate() == (10, 10, "") and secrets() == before
    settings.CONVOY_ENCRYPTION_KEYS = [NEW]
    assert secrets() == before and Cluster.objects.get().resource_version == version
    assert rotate() == (10, 0, "")


def test_one_that_stops_half_way_is_started_again_and_everything_is_readable_meanwhile(old, settings):
    before = secrets()
    assert rotate(batches=5)[1] == 6 and secrets() == before
    settings.CONVOY_ENCRYPTION_KEYS = [old, NEW]
    assert secrets() == before
    settings.CONVOY_ENCRYPTION_KEYS = [NEW, old]
    assert rotate() == (10, 4, "")
    settings.CONVOY_ENCRYPTION_KEYS = [NEW]
    assert secrets() == before


def test_a_secret_that_is_written_with_the_old_key_behind_its_back_is_caught_by_the_next_one(old, settings):
    rotate()
    settings.CONVOY_ENCRYPTION_KEYS = [old, NEW]
    Dependent.objects.filter(name="s3").update(manifest={"data": "late"})
    settings.CONVOY_ENCRYPTION_KEYS = [NEW, old]
    assert rotate() == (10, 1, "")


@pytest.mark.django_db(transaction=True)
def test_two_at_once_lose_nothing_of_what_is_read_changed_and_added_meanwhile(old, settings, monkeypatch):
    start = threading.Barrier(4)
    if connection.vendor == "sqlite":  # its writers queue without an order: on a busy machine one may wait for long
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 300)

    def changes():
        for number in range(14):
            Dependent.objects.filter(name=f"s{number % 7}").update(manifest={"data": f"new {number}"})
            now = timezone.now()
            Dependent.objects.create(
                kind="Secret", namespace="a", name=f"late{number}", manifest=number, created_at=now
            )
        Cluster.objects.create(name="late", access={"token": "late"}, state="Ready", state_since=now, joined_at=now)

    def reads():
        for _ in range(7):
            assert None not in secrets()

    def run(work):
        try:
            start.wait(120)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        ends = [threads.submit(run, work) for work in (rotate, rotate, changes, reads)]
        first, second, *_ = [each.result() for each in ends]
    assert first[2] == second[2] == "", "both came to the end"
    assert min(first[0], second[0]) >= 10 and first[1] + second[1] >= 3, "three rows nothing else writes"
    settings.CONVOY_ENCRYPTION_KEYS = [NEW]
    kept = dict(Dependent.objects.values_list("name", "manifest"))
    assert kept == {f"s{n}": {"data": f"new {n + 7}"} for n in range(7)} | {f"late{n}": n for n in range(14)}
    assert Cluster.objects.get(name="late").access == {"token": "late"} and rotate() == (25, 0, "")


def test_a_row_that_no_key_reads_stops_it_by_name_and_stays_as_it_is(old, settings):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_dependent SET manifest = 'gAAAAnothing' WHERE name = 's5'")
    pk = Dependent.objects.only("pk").get(name="s5").pk
    with pytest.raises(Conflict, match=f"no key reads Dependent {pk}"):
        rotate()
    with pytest.raises(SecretUnreadable):
        Dependent.objects.get(name="s5")


def test_a_batch_that_breaks_off_has_changed_nothing(old, settings, monkeypatch):
    plain, seen = key_rotation._plain, []

    def breaks(model, pk, text):
        seen.append(pk)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return plain(model, pk, text)

    monkeypatch.setattr(key_rotation, "_plain", breaks)
    columns = [f"{model.__name__}" for model, _ in key_rotation._columns()]
    with pytest.raises(KeyboardInterrupt):
        key_rotation.rotate_batch(f"{columns.index('Dependent')}.0")
    monkeypatch.undo()
    settings.CONVOY_ENCRYPTION_KEYS = [old]
    assert len(secrets()) == 10, "all of them are of the old key still"
    settings.CONVOY_ENCRYPTION_KEYS = [NEW, old]
    assert rotate() == (10, 10, "")


@pytest.mark.django_db(transaction=True)
def test_a_backup_of_before_fails_by_name_until_its_key_is_back_and_is_rotated_again(old, settings):
    backup = dict(Dependent.objects.annotate(raw=Cast(F("manifest"), TextField())).values_list("pk", "raw"))
    before = secrets()
    rotate()
    settings.CONVOY_ENCRYPTION_KEYS = [NEW]
    with connection.cursor() as cursor:
        for pk, text in backup.items():
            cursor.execute("UPDATE jobs_dependent SET manifest = %s WHERE id = %s", [text, pk])
    token = access.mint(person("eda", ("editor", "a")), "t", life=None, now=timezone.now())[1]

    async def get() -> Reader:
        reader = Reader(application(), token, "/api/v1/namespaces/a/secrets/s3")
        await reader.task
        return reader

    reader = asyncio.run(get())
    assert reader.code == 500 and b"add the key it was written with to the end of the list" in reader.body
    assert problems.handle(SecretUnreadable(), {}).status_code == 500
    settings.CONVOY_ENCRYPTION_KEYS = [NEW, old]
    assert secrets() == before and rotate() == (10, 7, "")
    settings.CONVOY_ENCRYPTION_KEYS = [NEW]
    assert secrets() == before and rotate() == (10, 0, "")


def test_no_secret_and_no_key_are_two_easy_cases(settings, db):
    settings.CONVOY_ENCRYPTION_KEYS = [NEW]
    assert rotate() == (0, 0, "")


@pytest.mark.parametrize("begin", ["x", "0", "0.", "-1.0", "0.1.2", "\u00b2.0", "9" * 30])
def test_it_refuses_a_beginning_that_is_none(old, begin):
    with pytest.raises(InvalidInput):
        key_rotation.rotate_batch(begin)


@pytest.mark.parametrize("begin", ["99.0", f"0.{'9' * 20}", "1.99999"])
def test_a_beginning_behind_the_end_is_the_end(old, begin):
    assert rotate(begin)[2] == ""


def test_fleet_admins_alone_rotate_and_the_audit_has_a_line_of_it(old, as_admin, as_editor):
    assert as_editor.post(URL, {}, format="json").status_code == 403
    assert client_of(person("quinn", ("quota-admin", ""))).post(URL, {}, format="json").status_code == 403
    batch = {"next": ""}
    for _ in range(10):
        batch = as_admin.post(URL, {"begin": batch["next"]}, format="json").json()
        if not batch["next"]:
            break
    assert AuditEntry.objects.filter(kind="EncryptionKeys", actor="ada", outcome="done").count() == 1
