"""Members and exporters that are slow, broken, new or many keep no other from being read."""

import threading
from concurrent.futures import thread as executors
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberDenied
from fleet.models import Cluster, GpuScrape, NodeReading
from fleet.services.gpus import scraping
from fleet.services.gpus.scraping import Before, Exporter
from simulator.apiserver import gpu_metrics
from tests.fleet.services.gpus.builders import add_exporter, add_gpu_node, be_unhurried, read
from tests.support.members import api, join, with_namespace

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    be_unhurried(monkeypatch)


def again(row: Cluster) -> Cluster:
    """One more member, with the same server."""
    fields = {"server": row.server, "access": row.access, "state": row.state}
    return Cluster.objects.create(name="south", **fields, state_since=START, joined_at=START)


def nodes() -> set[str]:
    return set(NodeReading.objects.values_list("node", flat=True))


def test_those_that_did_not_answer_come_last_but_for_a_few_that_were_asked_the_longest_ago():
    exporters = [Exporter("ns", f"e{n}", f"n{n}") for n in range(10)]
    before = Before({"n0": START, "n1": START - MINUTE, "n3": START}, {f"n{n}": 100.0 - n for n in range(3, 10)})
    order = [each.node for each in scraping.in_order(exporters, before)]
    assert order == ["n9", "n8", "n7", "n6", "n2", "n1", "n0", "n5", "n4", "n3"]


def test_it_remembers_which_nodes_did_not_answer_until_they_do(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    add_gpu_node(north, "n2")
    now, asked = timezone.now(), MemberClient.get_bounded

    def broken(client, path, **limits):
        if "-n1" in path:
            raise MemberAway("timed out")
        return asked(client, path, **limits)

    with monkeypatch.context() as patch:
        patch.setattr(MemberClient, "get_bounded", broken)
        read(now)
    assert GpuScrape.objects.get().failed == {"n1": now.timestamp()} and nodes() == {"n2"}
    with monkeypatch.context() as patch:
        patch.setattr(scraping.Visit, "read", lambda *_: "there was no time for it")
        read(now + MINUTE)
    assert GpuScrape.objects.get().failed == {"n1": now.timestamp()}
    read(now + 2 * MINUTE)
    assert GpuScrape.objects.get().failed == {} and nodes() == {"n1", "n2"}


def test_a_free_slot_goes_on_until_no_member_is_due(north, monkeypatch):
    again(join(north))
    monkeypatch.setattr(scraping, "_SLOTS", threading.BoundedSemaphore(1))
    now = timezone.now()
    assert read(now) == 1
    assert GpuScrape.objects.filter(due_at__gte=now + scraping._NONE).count() == 2


def test_a_member_that_was_never_read_comes_before_those_that_are_overdue(north):
    old = join(north)
    new, now = again(old), timezone.now()
    GpuScrape.objects.create(cluster=old, due_at=now - timedelta(hours=1))
    assert [scraping._claimed(now).pk, scraping._claimed(now).pk, scraping._claimed(now)] == [new.pk, old.pk, None]


def test_a_slot_is_free_again_when_a_member_cannot_be_claimed(north, monkeypatch):
    join(north)

    def locked(*_):
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(scraping, "_claim", locked)
        for _ in range(scraping._MEMBERS_AT_ONCE + 1):
            with pytest.raises(OperationalError):
                scraping.start(timezone.now())
    assert read() == 1


def test_an_exporter_that_prints_a_number_of_400_digits_blinds_no_other(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    add_gpu_node(north, "n2")
    monkeypatch.setattr(gpu_metrics.Exporters, "text", lambda *_: 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} ' + "1" * 400 + "\n")
    read()
    assert nodes() == {"n1", "n2"}


def test_what_fails_unforeseen_with_one_exporter_is_written_and_is_its_own(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    add_gpu_node(north, "n2")
    asked = scraping.Visit.read

    def broken(visit, exporter):
        if exporter.node == "n1":
            raise ZeroDivisionError
        return asked(visit, exporter)

    monkeypatch.setattr(scraping.Visit, "read", broken)
    now = timezone.now()
    read(now)
    assert nodes() == {"n2"} and GpuScrape.objects.get().message == f"node n1: {scraping._BROKEN}"
    monkeypatch.setattr(scraping, "in_order", lambda *_: 1 // 0)
    read(now + MINUTE)
    assert (GpuScrape.objects.get().message, GpuScrape.objects.get().due_at) == (scraping._BROKEN, now + 2 * MINUTE)


def test_only_running_pods_of_the_believed_namespaces_are_listed(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    add_exporter(north, "n2", namespace="team")
    with_namespace(api(north), "gpu-operator")
    over = {"metadata": {"name": "over", "labels": {"app": "dcgm-exporter"}}, "spec": {"nodeName": "n3"}}
    over["spec"]["containers"] = [{"name": "c", "image": "i"}]
    api(north).create(PODS.path("gpu-operator"), over)
    listed, pages = [], MemberClient.pages

    def noted(client, path, params):
        for page in pages(client, path, params):
            listed.extend(pod["spec"]["nodeName"] for pod in page["items"])
            yield page

    monkeypatch.setattr(MemberClient, "pages", noted)
    read()
    assert listed == ["n1"] and nodes() == {"n1"}


def test_a_list_that_takes_too_long_ends_and_the_member_is_asked_again(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    monkeypatch.setattr(scraping, "_BUDGET_S", -1.0)
    now = timezone.now()
    read(now)
    assert "longer than" in GpuScrape.objects.get().message and GpuScrape.objects.get().due_at == now + MINUTE


def test_an_exporter_that_refuses_by_itself_speaks_for_no_other(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    add_gpu_node(north, "n2")
    asked = MemberClient.get_bounded

    def refused(client, path, **limits):
        if "-n1" in path:
            raise MemberDenied("HTTP 403", status=403)
        return asked(client, path, **limits)

    monkeypatch.setattr(MemberClient, "get_bounded", refused)
    monkeypatch.setattr(scraping, "_EXPORTERS_AT_ONCE", 1)
    read()
    assert nodes() == {"n2"} and "n1: its exporter refuses to answer" in GpuScrape.objects.get().message


def test_it_says_when_a_member_has_more_exporters_than_are_read_at_a_time(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    add_gpu_node(north, "n2")
    monkeypatch.setattr(scraping, "MOST_EXPORTERS", 1)
    now = timezone.now()
    read(now)
    assert nodes() == {"n1"}
    assert GpuScrape.objects.get().message == "it has 2 exporters, of which 1 are read at a time"
    read(now + MINUTE)
    assert nodes() == {"n1", "n2"}


def test_a_process_that_ends_waits_for_no_exporter(north, monkeypatch):
    join(north)
    add_gpu_node(north, "n1")
    used, asked = [], MemberClient.get_bounded

    def noted(*args, **limits):
        used.append(threading.current_thread())
        return asked(*args, **limits)

    monkeypatch.setattr(MemberClient, "get_bounded", noted)
    read()
    assert [each.daemon for each in used] == [True] and not set(used) & set(executors._threads_queues)
