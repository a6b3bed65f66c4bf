"""Exporters of GPU readings are read through their member: each once in an interval, and none of them can do harm."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from fleet.core import gpu_readings
from fleet.kube.resources import PODS
from fleet.member import client as member_client
from fleet.member.errors import MemberAway
from fleet.models import Cluster, GpuHour, GpuScrape, NodeReading
from fleet.services.gpus import scraping, storing
from simulator.apiserver import gpu_metrics
from tests.fleet.services.gpus.builders import add_exporter, add_gpu_node, be_unhurried, read
from tests.support.members import add_pod, api, delete_pod, join, requests_of

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """On a busy machine an answer may take longer than it should."""
    be_unhurried(monkeypatch)


def gpus(node: str = "n1") -> list[gpu_readings.Reading]:
    return gpu_readings.loaded(NodeReading.objects.get(node=node).gpus)


def scrape() -> GpuScrape:
    return GpuScrape.objects.get()


def printing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(gpu_metrics.Exporters, "text", lambda *_: text)


def test_it_knows_what_each_gpu_does_and_which_pod_has_it(north):
    join(north)
    add_gpu_node(north, "n1", gpus=2)
    add_pod(north, "busy", node="n1")
    now = timezone.now()
    assert (read(now), read(now)) == (1, 0)
    first, second = gpus()
    assert (first.owner, second.owner) == (("team", "busy"), ("", ""))
    assert first.utilization > 80 and second.utilization == 0
    assert first.memory_used < first.memory_total and first.power > 100 and first.temperature > 40
    row, state = NodeReading.objects.get(), scrape()
    assert (row.at, row.measured, row.utilization) == (now, 2, first.utilization)
    assert (state.read_at, state.exporters, state.answered, state.message) == (now, 1, 1, "")


def test_it_asks_each_exporter_once_in_an_interval_and_keeps_each_minute(north, settings):
    join(north)
    for node in ("n1", "n2"):
        add_gpu_node(north, node)
    add_pod(north, "busy", node="n1")
    start = timezone.now().replace(minute=0)
    before = requests_of("north")
    assert [read(start + seconds * timedelta(seconds=1)) for seconds in (0, 10, 20, 50, 60)] == [1, 0, 0, 0, 1]
    lists = len(settings.CONVOY_GPU_EXPORTER_NAMESPACES) * len(scraping.SELECTORS)
    assert requests_of("north") - before == 2 * (2 + lists)
    kept = GpuHour.objects.get(node="n1").minutes
    assert sorted(kept["0"]) == ["0", "1"] and all(value > 80 for value in kept["0"].values())
    assert kept["1"] == {"0": 0, "1": 0}


def test_it_says_since_when_a_pod_leaves_its_gpus_idle(north):
    join(north)
    add_gpu_node(north, "n1")
    add_pod(north, "lazy", node="n1")
    note = {"metadata": {"annotations": {gpu_metrics.UTILIZATION: "0"}}}
    api(north).merge_patch(PODS.path("team", "lazy"), note)
    start = timezone.now()
    for minutes in range(3):
        read(start + minutes * MINUTE)
    assert gpus()[0].idle_since == start.isoformat() and NodeReading.objects.get().idle_since == start
    # After a silence it is not known what was meanwhile.
    late = start + 2 * MINUTE + storing.freshness() + MINUTE
    read(late)
    assert gpus()[0].idle_since == late.isoformat()
    delete_pod(north, "lazy")
    read(late + MINUTE)
    assert NodeReading.objects.get().idle_since is None


def test_only_pods_of_the_operators_namespaces_are_exporters(north):
    """A tenant can start a pod with any label, and print what it likes."""
    join(north)
    add_exporter(north, "n1", namespace="team")
    read()
    assert (scrape().exporters, NodeReading.objects.count()) == (0, 0)


def test_a_member_without_exporters_is_looked_at_rarely(north):
    join(north)
    now = timezone.now()
    assert [read(now + n * MINUTE) for n in (0, 1, 5, 11)] == [1, 0, 0, 1]


def test_a_member_that_did_not_answer_once_is_asked_again_after_the_usual_interval(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    now = timezone.now()
    with monkeypatch.context() as away:
        away.setattr(member_client.MemberClient, "pages", lambda *_: iter_away())
        assert read(now) == 1
    assert scrape().message.startswith("its exporters cannot be listed") and scrape().due_at == now + MINUTE
    assert read(now + MINUTE) == 1 and (scrape().message, scrape().answered) == ("", 1)


def iter_away() -> list[object]:
    raise MemberAway("no answer")


@pytest.mark.parametrize(
    "text", ["x" * (2 * scraping.MOST_BYTES), "nothing of a GPU\n", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} five\n']
)
def test_what_an_exporter_prints_harms_nothing_and_is_not_counted_against_its_member(north, monkeypatch, text):
    join(north)
    add_gpu_node(north, "n1")
    printing(monkeypatch, text)
    now = timezone.now()
    assert read(now) == 1
    row = Cluster.objects.get()
    assert (row.state, row.failing_since, NodeReading.objects.count()) == ("Ready", None, 0)
    assert scrape().message.startswith("node n1: ") and scrape().due_at == now + MINUTE


def test_an_exporter_that_fails_keeps_no_other_from_being_read(north):
    join(north)
    add_gpu_node(north, "n1")
    add_exporter(north, "no-such-node")
    read()
    assert [row.node for row in NodeReading.objects.all()] == ["n1"]
    assert (scrape().exporters, scrape().answered) == (2, 1) and "no-such-node" in scrape().message


def test_an_exporter_speaks_of_its_own_node_only(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    printing(monkeypatch, 'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n2",node="n2"} 50\n')
    read()
    assert [row.node for row in NodeReading.objects.all()] == ["n1"]


def begun(monkeypatch: pytest.MonkeyPatch, now: datetime) -> Callable[[], None]:
    """A worker that is held up while it reads; what lets it go on and waits for its end."""
    asked, answer, outcome = threading.Event(), threading.Event(), scraping._outcome

    def late(*args):
        asked.set()
        assert answer.wait(120)
        return outcome(*args)

    with monkeypatch.context() as patch:
        patch.setattr(scraping, "_outcome", late)
        [thread] = scraping.start(now)
        assert asked.wait(120)

    def finish() -> None:
        answer.set()
        thread.join(120)
        assert not thread.is_alive()

    return finish


def test_a_late_answer_for_a_member_that_is_gone_is_dropped(north, monkeypatch):
    row = join(north)
    add_gpu_node(north, "n1")
    finish = begun(monkeypatch, timezone.now())
    Cluster.objects.filter(pk=row.pk).delete()
    finish()
    assert not NodeReading.objects.exists()


def test_a_worker_that_was_away_puts_no_older_reading_over_a_newer_one(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    start = timezone.now()
    finish = begun(monkeypatch, start)
    later = start + scraping._CLAIM + MINUTE
    assert read(later) == 1
    finish()
    assert NodeReading.objects.get().at == later and scrape().due_at == later + MINUTE


def test_a_member_is_read_by_one_process_and_again_when_that_one_died(north, monkeypatch):
    join(north)
    monkeypatch.setattr(scraping, "_write", lambda *_: None)
    now = timezone.now()
    assert (read(now), read(now)) == (1, 0)
    assert read(now + scraping._CLAIM + MINUTE) == 1


def test_nothing_is_read_where_it_is_switched_off(north, settings):
    join(north)
    settings.CONVOY_GPUS = type(settings.CONVOY_GPUS)(interval_s=0)
    assert read() == 0


def test_readings_are_forgotten_after_their_time(north, settings):
    join(north)
    add_gpu_node(north, "n1")
    now = timezone.now()
    read(now)
    storing.forget_readings(now + timedelta(hours=1))
    assert (GpuHour.objects.count(), NodeReading.objects.count()) == (1, 1)
    storing.forget_readings(now + timedelta(seconds=settings.CONVOY_GPUS.keep_s) + timedelta(hours=3))
    assert (GpuHour.objects.count(), NodeReading.objects.count()) == (0, 0)
