"""A training that reports its steps and stops to is found, looked at in its log, and treated as its job wants."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.utils import timezone

from fleet.core.security.webhooks import Webhook, signature
from fleet.errors import InvalidInput
from fleet.models import Cluster, Event
from jobs.models import Attempt, Hang, Job, Notice, Pace, Progress
from jobs.services.follow import hangs
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
ENDED = b"step 2 loss 2.3\n"


class Clock:
    def __init__(self):
        self.now = timezone.now()

    def report(self, job, step, after_s=5, saved_step=None):
        self.now += timedelta(seconds=after_s)
        row = {"attempt": job.attempt, "step": step, "saved_step": saved_step, "reported_at": self.now}
        Progress.objects.update_or_create(job=job, defaults=row)
        hangs.review(self.now)

    def look(self, job, after_s):
        self.now += timedelta(seconds=after_s)
        hangs.review(self.now)
        return hangs.check(job.uid, self.now)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def silent(training, logs, clock):
    """Runs with steps of five seconds, the last of which was the second; its log ended with it."""

    def start(**annotations):
        job = training(workers=1, **annotations)
        logs["llama-master-0"] = logs["llama-worker-0"] = ENDED
        clock.report(job, 1)
        clock.report(job, 2)
        return job

    return start


def said():
    return list(Event.objects.filter(reason__in=("Hung", "HangOver")).order_by("id").values_list("reason", flat=True))


def test_1_4_16_silence_of_120_seconds_is_a_hang_once_and_is_over_with_the_next_step(silent, clock):
    job = silent()
    assert [clock.look(job, after_s) for after_s in (119, 2, 60)] == [False, True, False]
    hang = Hang.objects.get()
    assert (hang.step, hang.attempt, hang.policy, hang.over_at) == (2, 1, "Notify", None)
    assert hang.found_at - hang.since == timedelta(seconds=121)
    clock.report(job, 3)
    hang.refresh_from_db()
    assert hang.over_at == clock.now and said() == ["Hung", "HangOver"]
    assert books.job("llama").state == "Running" and Attempt.objects.count() == 1
    assert clock.look(job, 9999) and Hang.objects.count() == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda job: Job.objects.update(suspended=True),
        lambda job: Job.objects.update(state="Queued"),
        lambda job: Job.objects.update(state="Reclaiming", reclaim={}),
        lambda job: Job.objects.update(attempt=2),
        lambda job: Cluster.objects.update(state="NotReady"),
        lambda job: Notice.objects.create(
            job=job,
            attempt=1,
            cluster_name="north",
            notice_id="n",
            pod="p",
            cause="c",
            scope="Pods",
            at=timezone.now(),
            deadline=timezone.now(),
        ),  # fmt: skip
    ],
    ids=["suspended", "queued", "evicted", "another attempt", "not seen", "asked to stop"],
)
def test_1_4_16_it_is_not_judged_while_it_cannot_make_steps_or_is_not_seen(silent, clock, change):
    job = silent()
    change(job)
    assert not clock.look(job, 9999) and said() == []


def test_1_4_16_it_is_not_judged_in_its_first_step(training, logs, clock):
    job = training()
    clock.report(job, 0)
    assert not clock.look(job, 9999)


def test_1_4_16_a_checkpoint_may_take_as_long_as_the_longest_before(silent, clock):
    job = silent()
    clock.report(job, 3, after_s=105, saved_step=3)
    assert [clock.look(job, after_s) for after_s in (200, 21)] == [False, True]


def test_a_supervisor_that_passes_on_no_reports_is_no_hang_as_long_as_the_log_goes_on(silent, logs, clock):
    printed_at = datetime(2026, 1, 1, tzinfo=UTC)  # as the member says of all lines
    clock.now = printed_at - timedelta(seconds=125)
    job = silent()
    assert [clock.look(job, after_s) for after_s in (121, 10)] == [False, False]
    logs["llama-master-0"] += b'{"name":"convoy.silence","rank":0,"step":2}\n'
    assert clock.look(job, 110)


def test_a_member_that_gives_no_log_is_asked_again(silent, clock):
    job = silent()
    access = job.cluster.access
    Cluster.objects.update(access={**access, "server": "https://127.0.0.1:1"})
    assert not clock.look(job, 121)
    Cluster.objects.update(access=access)
    assert [clock.look(job, after_s) for after_s in (20, 11)] == [False, True]


def test_1_4_16_it_restarts_its_pods_at_their_place_if_the_job_wants_that(silent, clock):
    job = silent(on_hang="Restart")
    assert clock.look(job, 121)
    job = books.job("llama")
    assert (job.state, job.attempt, job.cluster.name) == ("Placed", 2, "north")
    assert Attempt.objects.get(number=1).outcome == "Superseded"
    assert not clock.look(job, 9999)


def test_1_4_16_it_leaves_for_another_place_if_the_job_wants_that(silent, clock):
    job = silent(on_hang="Relaunch")
    assert clock.look(job, 121)
    assert books.job("llama").state in ("Moving", "Queued") and Attempt.objects.get(number=1).outcome == "Failed"


def test_one_job_that_reports_without_end_keeps_no_other_from_being_judged(silent, clock, monkeypatch):
    monkeypatch.setattr(hangs, "_BATCH", 1)
    llama = silent()
    books.apply(pytorch_job("noisy", workers=0))
    books.cycle()
    books.sent()
    books.report("noisy", "Running")
    noisy = books.job("noisy")
    for step in range(3, 8):
        clock.report(noisy, step, after_s=1)
        clock.report(llama, step, after_s=1)
        clock.report(noisy, 2**53 - step, after_s=1, saved_step=step)
    for _ in range(4):
        hangs.review(clock.now)
    assert Pace.objects.get(job=llama).step == 7
    assert clock.look(llama, 125) and Hang.objects.get().job == llama


def test_the_shortest_silence_is_the_jobs_own(silent, clock):
    job = silent(hang_after="30m", on_hang="Log")
    assert [clock.look(job, after_s) for after_s in (1799, 2)] == [False, True]


@pytest.mark.parametrize(("annotation", "value"), [("on-hang", "Reboot"), ("hang-after", "soon"), ("hang-after", "0s")])
def test_an_annotation_that_makes_no_sense_is_refused_with_its_field(db, annotation, value):
    books.a_cluster("north")
    with pytest.raises(InvalidInput, match=f"convoy.dev/{annotation}"):
        books.apply(books.annotated(f"convoy.dev/{annotation}", value, pytorch_job("llama")))


@pytest.fixture
def receiver(settings):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.heard.append((self.headers["X-Convoy-Timestamp"], self.headers["X-Convoy-Signature"], body))
            self.send_response(server.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.heard, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    settings.CONVOY_HANG_WEBHOOK = Webhook(f"http://127.0.0.1:{server.server_port}/hook", "hush")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_1_4_16_the_webhook_is_called_with_a_signature_until_it_takes_the_call(silent, clock, receiver):
    job = silent()
    receiver.status = 503
    assert clock.look(job, 121)
    pk = Hang.objects.get().pk
    assert not hangs.notify(pk, clock.now) and not hangs.notify(pk, clock.now)
    receiver.status = 204
    assert hangs.notify(pk, clock.now + timedelta(seconds=11))
    assert not hangs.notify(pk, clock.now + timedelta(days=1))
    assert len(receiver.heard) == 2
    at, signed, body = receiver.heard[-1]
    assert signed == f"sha256={signature('hush', at, body)}"
    assert (json.loads(body)["name"], json.loads(body)["step"]) == ("llama", 2)


def test_a_webhook_that_never_takes_a_call_is_given_up(silent, clock, receiver):
    job = silent()
    receiver.status = 500
    clock.look(job, 121)
    pk = Hang.objects.get().pk
    for hours in range(9):
        hangs.notify(pk, clock.now + timedelta(hours=2 * hours))
    assert len(receiver.heard) == 5 and not hangs.exist()
