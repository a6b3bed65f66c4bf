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
SAYS_SO = b'{"name":"convoy.silence","rank":0,"step":2}\n'


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


def another(name):
    books.apply(pytorch_job(name, workers=0))
    books.cycle()
    books.sent()
    books.report(name, "Running")
    return books.job(name)


def watched(clock, since_s):
    """Without interruption, for so many seconds."""
    Cluster.objects.update(watched_since=clock.now - timedelta(seconds=since_s), watched_until=clock.now)


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
        lambda job: Cluster.objects.update(stale_since=timezone.now()),
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
            stopped_at=timezone.now(),
        ),  # fmt: skip
    ],
    ids=["suspended", "queued", "evicted", "another attempt", "not seen", "not watched", "asked to stop"],
)
def test_1_4_16_it_is_not_judged_while_it_cannot_make_steps_or_is_not_seen(silent, clock, change):
    job = silent()
    change(job)
    assert not clock.look(job, 9999) and said() == []


def test_silence_while_its_cluster_was_not_watched_is_none_of_its_own(silent, clock):
    job = silent()
    clock.now += timedelta(seconds=200)
    watched(clock, since_s=1)
    assert not hangs.check(job.uid, clock.now)
    clock.now += timedelta(seconds=118)
    watched(clock, since_s=119)
    assert not clock.look(job, 0)
    clock.now += timedelta(seconds=2)
    watched(clock, since_s=121)
    assert clock.look(job, 0)


@pytest.mark.parametrize("behind_s", [0, 600])
def test_after_a_notice_to_some_of_its_pods_it_is_judged_again(silent, clock, behind_s):
    """By the clock of the fleet, where that of the member is behind."""
    job, deadline = silent(), clock.now + timedelta(seconds=30)
    Notice.objects.create(
        job=job, attempt=1, cluster_name="north", notice_id="n", pod="p", cause="c", scope="Pods", at=clock.now,
        deadline=deadline - timedelta(seconds=behind_s), until=deadline if behind_s else None,
    )  # fmt: skip
    assert [clock.look(job, after_s) for after_s in (130, 130, 9)] == [False, False, False]
    assert clock.look(job, 2)


def test_a_time_of_before_the_clock_was_set_back_begins_the_silence_anew(silent, clock):
    job = silent()
    clock.now -= timedelta(days=60)
    assert [clock.look(job, after_s) for after_s in (0, 119, 2)] == [False, False, True]


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
    logs["llama-master-0"] += SAYS_SO
    assert clock.look(job, 110)


def test_a_member_that_gives_no_log_is_asked_again(silent, clock):
    job = silent()
    access = job.cluster.access
    Cluster.objects.update(access={**access, "server": "https://127.0.0.1:1"})
    assert not clock.look(job, 121)
    Cluster.objects.update(access=access)
    assert [clock.look(job, after_s) for after_s in (20, 11)] == [False, True]


def test_1_4_16_it_restarts_its_pods_at_their_place_if_the_job_wants_that(silent, logs, clock):
    job = silent(on_hang="Restart")
    logs["llama-master-0"] += SAYS_SO
    assert clock.look(job, 121)
    job = books.job("llama")
    assert (job.state, job.attempt, job.cluster.name) == ("Placed", 2, "north")
    assert Attempt.objects.get(number=1).outcome == "Superseded"
    assert not clock.look(job, 9999)


def test_1_4_16_it_leaves_for_another_place_if_the_job_wants_that(silent, logs, clock):
    job = silent(on_hang="Relaunch")
    logs["llama-master-0"] += SAYS_SO
    assert clock.look(job, 121)
    assert books.job("llama").state in ("Moving", "Queued") and Attempt.objects.get(number=1).outcome == "Failed"


@pytest.mark.parametrize("policy", ["Restart", "Relaunch"])
def test_a_silence_of_a_whole_cluster_restarts_no_job(silent, clock, policy):
    job, other = silent(on_hang=policy), another("other")
    clock.report(other, 1, after_s=1)
    clock.report(other, 2, after_s=1)
    assert [clock.look(job, after_s) for after_s in (121, 31)] == [False, False]
    # The supervisor is back, and hears the other one first.
    clock.report(other, 3, after_s=30)
    hangs.check(job.uid, clock.now)
    clock.report(job, 30, after_s=4)
    assert [clock.look(job, after_s) for after_s in (30, 31)] == [False, False]
    assert books.job("llama").attempt == 1 and books.job("llama").state == "Running"


def test_a_job_that_is_silent_while_another_one_reports_is_restarted(silent, clock):
    job, other = silent(on_hang="Restart"), another("other")
    clock.look(job, 121)
    for step in range(1, 9):
        clock.report(other, step, after_s=10)
        hangs.check(job.uid, clock.now)
    assert books.job("llama").attempt == 2 and said() == ["Hung"]


def test_a_silence_that_nothing_proves_is_said_and_restarts_nothing(silent, clock):
    job = silent(on_hang="Restart")
    assert [clock.look(job, after_s) for after_s in (121, 100, 31, 999)] == [False, False, True, False]
    assert books.job("llama").attempt == 1 and said() == ["Hung"]
    assert Event.objects.filter(reason="NotRestarted").count() == 1


def test_one_job_that_reports_without_end_keeps_no_other_from_being_judged(silent, clock, monkeypatch):
    monkeypatch.setattr(hangs, "_BATCH", 1)
    llama, noisy = silent(), another("noisy")
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


@pytest.mark.parametrize(
    ("annotation", "value"), [("on-hang", "Reboot"), ("hang-after", "soon"), ("hang-after", "59s")]
)
def test_an_annotation_that_makes_no_sense_is_refused_with_its_field(db, annotation, value):
    books.a_cluster("north")
    with pytest.raises(InvalidInput, match=f"convoy.dev/{annotation}"):
        books.apply(books.annotated(f"convoy.dev/{annotation}", value, pytorch_job("llama")))


def test_a_job_that_hangs_again_and_again_costs_ten_hangs_an_hour_and_keeps_the_latest(silent, clock, monkeypatch):
    monkeypatch.setattr(hangs, "_MOST_AN_HOUR", 2)
    monkeypatch.setattr(hangs, "_KEPT", 3)
    job = silent(on_hang="Log")
    hung = []
    for step in range(3, 9):
        hung.append(clock.look(job, 121))
        clock.report(job, 1000 * step, after_s=1)
    assert hung == [True, True, False, False, False, False]
    for step in range(9, 12):
        assert clock.look(job, 3601)
        clock.report(job, 1000 * step, after_s=1)
    assert list(Hang.objects.order_by("pk").values_list("step", flat=True)) == [8000, 9000, 10000]


@pytest.mark.parametrize("change", [{"deleting_at": timezone.now()}, {"reclaim": {}}], ids=["deleted", "evicted"])
def test_a_job_that_leaves_while_its_log_is_read_is_not_started_again(silent, logs, clock, monkeypatch, change):
    job = silent(on_hang="Restart")
    read = hangs._signs

    def changed_meanwhile(of):
        Job.objects.update(**change)
        return read(of)

    monkeypatch.setattr(hangs, "_signs", changed_meanwhile)
    logs["llama-master-0"] += SAYS_SO
    assert not clock.look(job, 121)
    assert books.job("llama").attempt == 1 and said() == []


def test_a_job_that_is_deleted_while_its_report_is_read_keeps_no_other_from_being_learned(silent, clock, monkeypatch):
    silent()
    monkeypatch.setattr(hangs, "_wanted", lambda jobs: {})
    clock.report(books.job("llama"), 3)
    assert Pace.objects.get().step == 2


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


def test_a_call_that_was_due_before_the_clock_was_set_back_is_made(silent, clock, receiver):
    clock.look(silent(), 121)
    Hang.objects.update(notify_due_at=clock.now + timedelta(hours=2))
    assert hangs.notify(Hang.objects.get().pk, clock.now)


def test_a_webhook_that_never_takes_a_call_is_given_up(silent, clock, receiver):
    job = silent()
    receiver.status = 500
    clock.look(job, 121)
    pk = Hang.objects.get().pk
    for hours in range(9):
        hangs.notify(pk, clock.now + timedelta(hours=2 * hours))
    assert len(receiver.heard) == 5 and not hangs.exist()
