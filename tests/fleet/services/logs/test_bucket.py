"""Logs of ended pods in a bucket: what happens when it is away, refuses, or was set later than the folder.

The bucket is a server on a loopback port that keeps objects and checks nothing; `tests/clients/test_s3_archive.py` has one that
checks signatures.
"""

import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from fleet.core.log_bucket import LogBucket
from fleet.core.members.log_text import Selection
from fleet.errors import NotFound, Unavailable
from fleet.models import ArchivedLog, EndedPod
from fleet.services.logs import archive, reading, retention
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.members import PODS, api, join, members

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)
TEXT = b"one\ntwo\n"


class Output:
    def read(self, namespace, name, offset):
        return TEXT[offset:], True


class Bucket(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.refuses, self.asked = {}, "", []
        self.url = f"http://127.0.0.1:{self.server_port}/logs/fleet"


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(self.command)
        if self.server.refuses:
            return self.send(403, f"<Error><Code>{self.server.refuses}</Code></Error>".encode())
        if self.command == "PUT":
            self.server.objects[self.path] = body
            return self.send(200)
        if self.command == "DELETE":
            self.server.objects.pop(self.path, None)
            return self.send(204)
        content = self.server.objects.get(self.path)
        return self.send(404, b"<Code>NoSuchKey</Code>") if content is None else self.send(200, content)

    do_GET = do_PUT = do_DELETE = answer

    def send(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def bucket(settings):
    with Bucket() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        settings.CONVOY_LOGS_S3 = LogBucket(server.url, "AKIAEXAMPLE", "hunter2")
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ended(transactional_db, members):
    """Lets a pod end at a member that has its log."""
    server = members("north", log_source=Output())
    north = Member("north", join(server))

    def end(name="a"):
        pod = a_pod(name, namespace="team")
        made = api(server).create(PODS.path("team"), {key: pod[key] for key in ("metadata", "spec")})
        north.pods({**made, "status": {"phase": "Succeeded"}})
        return EndedPod.objects.get(uid=made["metadata"]["uid"])

    return end


def read_all(now=None):
    for thread in reading.start(lambda: now or timezone.now()):
        thread.join()


def kept(pod):
    return archive.text_of(EndedPod.objects.get(pk=pod.pk), Selection()).content


def test_logs_are_objects_that_are_encrypted_and_go_with_their_rows(bucket, ended):
    pod = ended()
    read_all()
    [(path, content)] = bucket.objects.items()
    assert path == f"/logs/fleet/{pod.ref.hex[:2]}/{pod.ref}.0" and b"one" not in content
    assert ArchivedLog.objects.get().data is None and kept(pod) == TEXT
    retention.tidy(timezone.now() + timedelta(days=15))
    assert not EndedPod.objects.exists() and not bucket.objects


def test_a_refusal_is_said_without_a_secret_and_the_log_is_read_again_when_the_bucket_takes_it(bucket, ended):
    pod, bucket.refuses = ended(), "AccessDenied"
    read_all()
    row = EndedPod.objects.get()
    assert row.state == "Due" and row.message.endswith("the bucket answered 403 AccessDenied; see CONVOY_LOGS_S3")
    assert "hunter2" not in row.message and bucket.url not in row.message
    bucket.refuses = ""
    read_all(timezone.now() + timedelta(minutes=2))
    assert kept(pod) == TEXT and EndedPod.objects.get().message == ""


def test_a_log_that_could_not_be_stored_for_a_day_is_lost_and_says_why(bucket, ended):
    pod, bucket.refuses = ended(), "InvalidAccessKeyId"
    read_all(timezone.now() + timedelta(days=2))
    assert EndedPod.objects.get().state == "Lost"
    with pytest.raises(NotFound, match="could not be stored: the bucket answered 403 InvalidAccessKeyId"):
        kept(pod)


def test_a_bucket_that_is_away_is_no_log_that_is_gone_and_its_objects_outlive_no_row(bucket, ended):
    pod = ended()
    read_all()
    bucket.refuses = "SlowDown"
    with pytest.raises(Unavailable, match="SlowDown"):
        kept(pod)
    with pytest.raises(Exception, match="SlowDown"):
        retention.tidy(timezone.now() + timedelta(days=15))
    assert EndedPod.objects.exists()
    bucket.refuses = ""
    retention.tidy(timezone.now() + timedelta(days=15))
    assert not EndedPod.objects.exists() and not bucket.objects


def test_an_object_that_was_written_by_a_try_that_died_goes_too(bucket, ended, monkeypatch):
    ended()
    with monkeypatch.context() as patch:
        patch.setattr(reading.ArchivedLog.objects, "bulk_create", lambda rows: 1 / 0)
        read_all()
    assert len(bucket.objects) == 1 and EndedPod.objects.get().state == "Due"
    bucket.refuses = "AccessDenied"
    read_all(timezone.now() + timedelta(days=2))
    bucket.refuses = ""
    retention.tidy(timezone.now() + timedelta(days=15))
    assert not EndedPod.objects.exists() and not bucket.objects


def test_logs_of_the_folder_stay_readable_after_a_bucket_is_set(bucket, ended, settings, tmp_path):
    remote, settings.CONVOY_LOGS_S3 = settings.CONVOY_LOGS_S3, LogBucket()
    settings.CONVOY_LOGS_FOLDER = str(tmp_path / "logs")
    before = ended()
    read_all()
    settings.CONVOY_LOGS_S3 = remote
    after = ended("b")
    read_all()
    assert len(bucket.objects) == 1 and kept(before) == kept(after) == TEXT
    settings.CONVOY_LOGS_FOLDER = ""
    with pytest.raises(NotFound, match="CONVOY_LOGS_S3 and CONVOY_LOGS_FOLDER"):
        kept(before)
