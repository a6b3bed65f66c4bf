"""The archive of logs: what is written with a pod's end, read once, encrypted, and kept within its bounds."""

import threading
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from cryptography.fernet import Fernet
from django.db import transaction
from django.utils import timezone

from fleet.core.members.log_text import Selection
from fleet.core.settings import LogSettings
from fleet.errors import NotFound
from fleet.models import ArchivedLog, Cluster, EndedPod, Pod
from fleet.services.logs import archive, reading, recording, retention, storing
from fleet.services.operations import key_rotation
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.members import PODS, api, join, members

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)
WHOLE = Selection()


class Output:
    text = b"one\ntwo\n"

    def read(self, namespace, name, offset):
        return self.text[offset:], True


@pytest.fixture
def output():
    return Output()


@pytest.fixture
def server(transactional_db, members, output):
    return members("north", log_source=output)


@pytest.fixture
def north(server):
    return Member("north", join(server))


def a_pod_there(server, name="a", phase="Succeeded", namespace="team"):
    pod = a_pod(name, namespace=namespace)
    made = api(server).create(PODS.path(namespace), {key: pod[key] for key in ("metadata", "spec")})
    return {**made, "status": {"phase": phase}}


def read_all(now=None):
    for thread in reading.start(lambda: now or timezone.now()):
        thread.join()


def kept(pod):
    return archive.text_of(EndedPod.objects.get(uid=pod["metadata"]["uid"]), WHOLE).content


def test_a_pod_is_recorded_once_whether_it_is_seen_ending_or_first_seen_ended(north, server):
    running = a_pod_there(server, "a", "Running")
    north.pods(running)
    assert not EndedPod.objects.exists()
    for _ in range(2):
        north.pods({**running, "status": {"phase": "Failed"}})
    north.pods(a_pod_there(server, "b"))
    again = Member("north", north.row)
    again.pods({**running, "status": {"phase": "Failed", "reason": "Evicted"}})
    assert list(EndedPod.objects.order_by("name").values_list("name", "state")) == [("a", "Due"), ("b", "Due")]


def test_what_is_recorded_is_the_row_that_the_pod_had(north, server):
    north.pods(a_pod_there(server))
    row, shown = Pod.objects.get(), archive.as_row(EndedPod.objects.get())
    for field in Pod._meta.concrete_fields:
        if field.name not in ("id", "state"):
            assert getattr(shown, field.attname) == getattr(row, field.attname), field.name


def test_an_end_that_is_not_committed_is_not_recorded(north, server):
    with transaction.atomic():
        recording.record(
            north.row, [Pod(name="a", uid="u", job_uid=uuid4(), attempt=1, created_at=timezone.now())], timezone.now()
        )
        transaction.set_rollback(True)
    assert not EndedPod.objects.exists()


def test_no_log_stands_readable_in_the_database_and_a_rotation_of_keys_leaves_it_readable(
    north, server, output, settings
):
    output.text = b"password=hunter2\n" * 100
    pod = a_pod_there(server)
    north.pods(pod)
    read_all()
    row = ArchivedLog.objects.get()
    assert b"hunter2" not in bytes(row.data) and len(row.data) < 1000
    settings.CONVOY_ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.CONVOY_ENCRYPTION_KEYS]
    begin = "0.0"
    while begin:
        begin = key_rotation.rotate_batch(begin).next
    settings.CONVOY_ENCRYPTION_KEYS = settings.CONVOY_ENCRYPTION_KEYS[:1]
    assert kept(pod) == output.text


def test_logs_are_kept_in_a_folder_where_one_is_set_and_go_with_their_rows(north, server, output, settings, tmp_path):
    settings.CONVOY_LOGS_FOLDER = str(tmp_path / "logs")
    pod = a_pod_there(server)
    north.pods(pod)
    read_all()
    [file] = [path for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    assert b"one" not in file.read_bytes() and file.stat().st_mode & 0o77 == 0
    assert ArchivedLog.objects.get().data is None and kept(pod) == output.text
    retention.tidy(timezone.now() + timedelta(days=15))
    assert not EndedPod.objects.exists() and not file.exists()


def test_a_file_that_is_gone_or_is_another_one_is_said_to_be_unreadable(north, server, settings, tmp_path):
    settings.CONVOY_LOGS_FOLDER = str(tmp_path / "logs")
    pod = a_pod_there(server)
    north.pods(pod)
    read_all()
    [file] = [path for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    file.write_bytes(b"something else, which is no log of ours")
    with pytest.raises(NotFound, match="not what was written"):
        kept(pod)
    file.unlink()
    with pytest.raises(NotFound, match="CONVOY_LOGS_FOLDER"):
        kept(pod)


def test_a_try_that_died_after_its_file_was_written_is_made_again(
    north, server, output, settings, tmp_path, monkeypatch
):
    settings.CONVOY_LOGS_FOLDER = str(tmp_path / "logs")
    pod = a_pod_there(server)
    north.pods(pod)
    with monkeypatch.context() as patch:
        patch.setattr(reading.ArchivedLog.objects, "bulk_create", lambda rows: 1 / 0)
        read_all()
    assert EndedPod.objects.get().state == "Due"
    read_all(timezone.now() + timedelta(hours=1))
    assert kept(pod) == output.text
    assert len([path for path in (tmp_path / "logs").rglob("*") if path.is_file()]) == 1


def test_two_workers_read_a_pod_once(north, server):
    north.pods(*(a_pod_there(server, f"pod-{n}") for n in range(5)))
    threads = [threading.Thread(target=reading._tend, args=(north.row.pk, timezone.now)) for _ in range(2)]
    for _ in threads:
        reading._SLOTS.acquire()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(EndedPod.objects.values_list("state", flat=True)) == ["Kept"] * 5
    assert ArchivedLog.objects.count() == 5


def test_a_member_that_is_away_is_asked_again_until_its_time_is_over(north, server):
    pod = a_pod_there(server)
    north.pods(pod, a_pod_there(server, "b"))
    server.stop()
    read_all()
    assert set(EndedPod.objects.values_list("state", flat=True)) == {"Due"}
    assert not reading.start(timezone.now)
    Cluster.objects.update(server="https://127.0.0.1:1")
    read_all(timezone.now() + timedelta(days=2))
    assert set(EndedPod.objects.values_list("state", flat=True)) == {"Lost"}
    assert all("cannot be reached" in pod.message for pod in EndedPod.objects.all())


def test_a_cluster_that_leaves_before_the_log_was_read_takes_it_along(north, server):
    north.pods(a_pod_there(server))
    Cluster.objects.all().delete()
    assert not reading.start(timezone.now)
    retention.tidy(timezone.now())
    pod = EndedPod.objects.get()
    assert (pod.state, pod.cluster_name) == ("Lost", "north") and "left the fleet" in pod.message


def test_a_log_without_end_is_kept_from_its_end(north, server, output, settings):
    settings.CONVOY_LOGS = LogSettings(container_bytes=1024, container_lines=1000)
    output.text = b"".join(b"line %06d\n" % n for n in range(5000))
    pod = a_pod_there(server)
    north.pods(pod)
    read_all()
    text = kept(pod)
    assert output.text.endswith(text) and text and ArchivedLog.objects.get().is_cut
    assert archive.text_of(EndedPod.objects.get(), WHOLE).notes


def ended_pod(namespace, size, age_s, **values):
    now = timezone.now() - timedelta(seconds=age_s)
    own = {
        "cluster_name": "north",
        "cluster_uid": UUID(int=1),
        "name": "a",
        "uid": str(uuid4()),
        "job_uid": uuid4(),
        "attempt": 1,
    }
    return EndedPod.objects.create(
        **own, namespace=namespace, pod="{}", ended_at=now, state="Kept", stored_bytes=size, **values
    )


def test_beyond_the_total_the_oldest_of_the_largest_namespace_go_first(transactional_db, settings):
    settings.CONVOY_LOGS = LogSettings(total_bytes=1000)
    quiet = [ended_pod("quiet", 100, age_s=5000 + n) for n in range(3)]
    loud = [ended_pod("loud", 100, age_s=n) for n in range(40)]
    retention.tidy(timezone.now())
    left = set(EndedPod.objects.values_list("pk", flat=True))
    assert left == {pod.pk for pod in quiet} | {pod.pk for pod in loud[:7]}


def test_logs_go_with_their_age_and_none_are_recorded_where_none_are_wanted(north, server, settings):
    ended_pod("team", 1, age_s=15 * 86400)
    fresh = ended_pod("team", 1, age_s=13 * 86400)
    retention.tidy(timezone.now())
    assert list(EndedPod.objects.values_list("pk", flat=True)) == [fresh.pk]
    settings.CONVOY_LOGS = LogSettings(total_bytes=0)
    retention.tidy(timezone.now())
    north.pods(a_pod_there(server))
    assert not EndedPod.objects.exists()


def test_what_is_stored_is_read_again_only_with_its_own_key():
    key, stored = storing.pack(b"text")
    other, _ = storing.pack(b"text")
    assert storing.unpack(key, stored) == b"text"
    for wrong in ((other, stored), (key, stored[:-1]), (key, b""), (key, stored + b"x")):
        with pytest.raises(storing.LogUnreadable):
            storing.unpack(*wrong)


def stopping(north, server, name="a"):
    """A running pod that Convoy is about to stop."""
    pod = a_pod_there(server, name, "Running")
    north.pods(pod)
    return pod, recording.record_stopping(north.row, Pod.objects.filter(uid=pod["metadata"]["uid"]), timezone.now())


def test_a_pod_that_is_about_to_be_stopped_is_read_before_and_again_when_its_end_is_seen(north, server, output):
    pod, rows = stopping(north, server)
    reading.read_before_stop(rows, timezone.now, 10)
    ended = EndedPod.objects.get()
    assert (ended.state, kept(pod)) == ("Kept", output.text)
    assert "may be missing" in archive.text_of(ended, WHOLE).notes[0]
    assert (archive.as_row(ended).phase, archive.as_row(ended).reason) == ("Failed", "Stopped")
    output.text += b"saved\n"
    north.pods({**pod, "status": {"phase": "Succeeded"}})
    assert kept(pod) == b"one\ntwo\n"
    read_all()
    assert kept(pod) == output.text and not archive.text_of(EndedPod.objects.get(), WHOLE).notes
    assert archive.as_row(EndedPod.objects.get()).phase == "Succeeded" and ArchivedLog.objects.count() == 1


def test_a_log_that_was_read_before_the_stop_stays_when_the_pod_is_gone_before_it_is_read_again(
    north, server, settings, tmp_path
):
    settings.CONVOY_LOGS_FOLDER = str(tmp_path / "logs")
    pod, rows = stopping(north, server)
    reading.read_before_stop(rows, timezone.now, 10)
    north.pods({**pod, "status": {"phase": "Failed"}})
    api(server).delete(PODS.path("team", "a"), grace_s=0)
    read_all()
    ended = EndedPod.objects.get()
    assert (ended.state, ended.due_at, kept(pod)) == ("Kept", None, b"one\ntwo\n")


def test_the_file_of_the_log_before_the_stop_goes_when_the_whole_log_is_kept(north, server, settings, tmp_path):
    settings.CONVOY_LOGS_FOLDER = str(tmp_path / "logs")
    pod, rows = stopping(north, server)
    reading.read_before_stop(rows, timezone.now, 10)
    north.pods({**pod, "status": {"phase": "Failed"}})
    read_all()
    assert kept(pod) == b"one\ntwo\n"
    assert len([path for path in (tmp_path / "logs").rglob("*") if path.is_file()]) == 1


def test_an_end_that_is_seen_while_the_log_is_read_before_the_stop_loses_neither(north, server, output, monkeypatch):
    pod, rows = stopping(north, server)
    read_logs = reading.read_logs

    def and_ends(*args):
        found = read_logs(*args)
        monkeypatch.undo()
        north.pods({**pod, "status": {"phase": "Failed"}})
        return found

    monkeypatch.setattr(reading, "read_logs", and_ends)
    reading.read_before_stop(rows, timezone.now, 10)
    assert (EndedPod.objects.get().state, kept(pod)) == ("Due", b"one\ntwo\n")
    output.text = b"one\ntwo\nthree\n"
    read_all()
    assert (EndedPod.objects.get().state, kept(pod)) == ("Kept", output.text)


def test_reading_before_a_stop_waits_no_longer_than_it_is_allowed(north, server, output):
    gate = threading.Event()
    output.read = lambda namespace, name, offset: gate.wait(120) and (b"late\n"[offset:], True)
    pod, rows = stopping(north, server)
    reading.read_before_stop(rows, timezone.now, 0.2)
    assert EndedPod.objects.get().state == "Due"
    gate.set()
    for thread in [thread for thread in threading.enumerate() if thread.name == "logs before a stop"]:
        thread.join(60)
    assert kept(pod) == b"late\n"


def test_a_pod_is_recorded_as_stopping_once_and_not_where_no_logs_are_kept(north, server, settings):
    pod, rows = stopping(north, server)
    assert len(rows) == 1
    again = recording.record_stopping(north.row, Pod.objects.all(), timezone.now())
    assert again == [] and EndedPod.objects.count() == 1
    EndedPod.objects.all().delete()
    settings.CONVOY_LOGS = LogSettings(total_bytes=0)
    assert recording.record_stopping(north.row, Pod.objects.all(), timezone.now()) == []
