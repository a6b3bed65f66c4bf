"""Windows of quotas through the services: what starts before one, what is evicted when it begins, and what follows its end."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from fleet.models import Event
from jobs.models import Job
from jobs.services.scheduling import loop
from jobs.services.submission import dry_runs, manifests, submit
from quotas.models import Queue
from quotas.services import trees, windows
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.quotas import PLENTY, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def fleet():
    loop._idle_caches.clear()
    books.a_cluster("north", 16)


def tree(begin: datetime = NOON + 4 * HOUR, *, low: int = 12, of_b: dict | None = None, **keys) -> None:
    """``a`` is promised ``low`` of 16 GPUs for two hours."""
    window = {"from": begin.isoformat(), "to": (begin + 2 * HOUR).isoformat(), "min": {GPU: low}, **keys}
    attributes = {"windows": json.dumps([window])}
    total = {**PLENTY, GPU: 16}
    a = leaf("a", "default", **gpus(0, 16), attributes=attributes)
    b = leaf("b", "other", **gpus(0, 16), attributes=of_b or {})
    trees.save(manifest(quota("root", total, total, a, b)), trees.Saving("system", NOON))


def submitted(name: str, devices: int, now: datetime, namespace: str = "other", **annotations: str) -> Job:
    documents = [yaml.safe_load(text) for text in (POLICY, pytorch_job(name, workers=0, gpus=devices))]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    documents[1]["metadata"]["annotations"] = annotations
    if lasts := annotations.pop("lasts", None):
        template = documents[1]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
        template.setdefault("metadata", {})["annotations"] = {"convoy.dev/duration": lasts}
    submit.apply(manifests.parse(yaml.safe_dump_all(documents).encode()), by="ada", now=now)
    return books.job(name)


def at(now: datetime) -> None:
    windows.review(now)
    books.cycle(now)
    books.sent()


def state(name: str) -> str:
    job = books.job(name)
    return job.reason["code"] if job.state == Job.State.QUEUED else job.state


def test_what_may_still_run_when_a_window_begins_does_not_start_in_its_place_and_says_until_when():
    tree(of_b={"max-runtime": "5h"})
    submitted("beside", 4, NOON)
    submitted("long", 1, NOON)
    submitted("short", 1, NOON, lasts="3h")
    submitted("ending", 1, NOON, **{"convoy.dev/deadline": "2026-03-10T15:59:59Z"})
    submitted("own", 12, NOON, "default")
    at(NOON)
    assert {name: state(name) for name in ("beside", "long", "short", "ending", "own")} == {
        "beside": "Placed", "long": "WindowAhead", "short": "Placed", "ending": "Placed", "own": "QuotaExceeded",
    }  # fmt: skip
    reason = books.job("long").reason
    assert reason["message"] == (
        "asks for 1 nvidia.com/gpu and may run until 2026-03-10 17:00:00 UTC, but a window of root/a begins at 2026-03-10"
        " 16:00:00 UTC: root has max 16 nvidia.com/gpu then, with 16 nvidia.com/gpu in use or promised to windows; the window"
        " ends at 2026-03-10 18:00:00 UTC"
    )
    facts = {key: reason["quota"][key] for key in ("window", "begin", "until", "ends")}
    assert facts == {"window": "root/a", "begin": "2026-03-10T16:00:00+00:00", "until": "2026-03-10T18:00:00+00:00",
                     "ends": "2026-03-10T17:00:00+00:00"}  # fmt: skip


def test_without_a_known_end_a_job_starts_before_the_lead_is_warned_and_does_not_start_within_it():
    tree(lead="2h")
    submitted("early", 6, NOON)
    at(NOON)
    assert state("early") == "Placed"
    [event] = Event.objects.filter(reason="WindowAhead")
    assert event.regarding_name == "early" and "from 2026-03-10 16:00:00 UTC on a window of root/a" in event.message
    submitted("late", 1, NOON + 2 * HOUR)
    at(NOON + 2 * HOUR)
    assert state("late") == "WindowAhead" and "states no time by which it ends" in books.job("late").reason["message"]


def test_the_first_job_of_the_window_starts_when_it_begins_by_what_is_evicted_for_it():
    tree()
    submitted("old", 8, NOON)
    submitted("older", 8, NOON)
    at(NOON)
    books.report("old", "Running", now=NOON)
    books.report("older", "Running", now=NOON + MINUTE)
    begin = NOON + 4 * HOUR
    submitted("show", 12, begin - MINUTE, "default")
    at(begin - timedelta(seconds=1))
    assert [state(name) for name in ("old", "older", "show")] == ["Running", "Running", "QuotaExceeded"]
    at(begin)
    assert [state(name) for name in ("old", "older", "show")] == ["Reclaiming", "Reclaiming", "WaitingForReclaim"]
    assert "root/b is" in books.job("old").reason["message"]


def test_after_the_window_what_it_held_is_borrowed_and_others_start_again():
    tree()
    begin = NOON + 4 * HOUR
    at(begin)
    assert Queue.objects.get(path="root/a").window == {
        "min": {GPU: 12}, "max": {}, "begin": "2026-03-10T16:00:00+00:00", "until": "2026-03-10T18:00:00+00:00",
    }  # fmt: skip
    submitted("other", 8, begin)
    at(begin)
    assert state("other") == "Placed", "what an open window promises is lent like any min"
    at(begin + 2 * HOUR)
    assert Queue.objects.get(path="root/a").window is None
    assert [event.reason for event in Event.objects.filter(regarding_kind="Queue").order_by("pk")] == [
        "WindowOpened", "WindowClosed",
    ]  # fmt: skip
    assert windows.review(begin + 2 * HOUR) == 0


def test_within_its_own_min_a_job_starts_whatever_window_lies_ahead():
    total = {**PLENTY, GPU: 16}
    window = {"from": (NOON + HOUR).isoformat(), "to": (NOON + 3 * HOUR).isoformat(), "min": {GPU: 12}}
    trees.save(manifest(quota("root", total, total,
        leaf("a", "default", **gpus(0, 16), attributes={"windows": json.dumps([window])}),
        leaf("b", "other", **gpus(4, 16)))), trees.Saving("system", NOON))  # fmt: skip
    submitted("firm", 4, NOON)
    submitted("more", 1, NOON)
    at(NOON)
    assert [state("firm"), state("more")] == ["Placed", "WindowAhead"]


def test_a_max_that_a_window_lowers_holds_for_those_that_would_reach_into_it():
    total = {**PLENTY, GPU: 16}
    window = {"from": (NOON + HOUR).isoformat(), "to": (NOON + 3 * HOUR).isoformat(), "max": {GPU: 2}}
    trees.save(
        manifest(
            quota("root", total, total, leaf("b", "other", **gpus(0, 16), attributes={"windows": json.dumps([window])}))
        ),
        trees.Saving("system", NOON),
    )
    submitted("small", 2, NOON)
    submitted("big", 4, NOON)
    submitted("quick", 4, NOON, lasts="59m")
    at(NOON)
    assert [state(name) for name in ("small", "big", "quick")] == ["Placed", "WindowAhead", "Placed"]
    at(NOON + HOUR)
    assert [state(name) for name in ("small", "quick")] == ["Placed", "Placed"], (
        "nothing is evicted for a max by itself"
    )


def test_nothing_is_evicted_for_a_job_that_would_not_start_before_a_window():
    """b is promised 8, and a window of c takes that min away: the job of b would be stopped again."""
    total, begin = {**PLENTY, GPU: 16}, NOON + HOUR
    times = {"from": begin.isoformat(), "to": (begin + HOUR).isoformat()}
    a = leaf("a", "default", **gpus(0, 16))
    b = leaf("b", "other", **gpus(8, 16), attributes={"windows": json.dumps([{**times, "min": {GPU: 0}}])})
    c = leaf("c", **gpus(0, 16), attributes={"windows": json.dumps([{**times, "min": {GPU: 16}}])})
    trees.save(manifest(quota("root", total, total, a, b, c)), trees.Saving("system", NOON - 9 * HOUR))
    submitted("runs", 16, NOON - 8 * HOUR, "default")
    at(NOON - 8 * HOUR)
    books.report("runs", "Running", now=NOON - 8 * HOUR)
    submitted("entitled", 8, NOON)
    at(NOON)
    assert [state("runs"), state("entitled")] == ["Running", "QuotaExceeded"]


def test_a_dry_run_says_what_a_window_keeps_waiting_and_looks_at_what_runs():
    tree()
    submitted("short", 4, NOON, lasts="1h")
    submitted("runs", 4, NOON, lasts="9h")
    at(NOON)
    assert [state("short"), state("runs")] == ["Placed", "Placed"]
    document = yaml.safe_load(pytorch_job("next", workers=0, gpus=1))
    document["metadata"] |= {"namespace": "other", "annotations": {"convoy.dev/deadline": "2026-03-10T18:00:00Z"}}
    outcomes = {}
    for name, deadline in (("late", "2026-03-10T18:00:00Z"), ("early", "2026-03-10T15:00:00Z")):
        document["metadata"] |= {"name": name, "annotations": {"convoy.dev/deadline": deadline}}
        [outcome] = dry_runs.preview_outcomes([document], by="ada", now=NOON + MINUTE)
        outcomes[name] = outcome.outcome, outcome.reason and outcome.reason.code
    assert outcomes == {"late": ("Waits", "WindowAhead"), "early": ("Starts", None)}
