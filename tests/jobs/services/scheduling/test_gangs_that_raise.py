"""A gang whose planning raises is left out of the cycle: the others are placed, and its job says why it is not."""

import importlib
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from prometheus_client import REGISTRY

from fleet.models import Event
from jobs import snapshot
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.placement.engine import Engine
from jobs.core.preemption.planner import _Planner
from jobs.core.scheduling import backfill_reservation
from jobs.core.settings import SchedulerSettings
from jobs.models import Job, Policy
from jobs.services.inspect import explaining, whatif
from jobs.services.scheduling import loop
from quotas.services import trees
from tests.jobs.services.scheduling.builders import WHOLE, job
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

RETRY_AFTER = timedelta(seconds=SchedulerSettings().rejected_retry_s)


class Poison(Exception):
    """An unforeseen error."""


@pytest.fixture(autouse=True)
def no_cache_of_another_test():
    loop._idle_caches.clear()


@pytest.fixture
def poison(monkeypatch):
    """Makes a function raise for what is about a job of this name; returns how to end that."""

    def set_up(owner, attribute, is_bad):
        real = getattr(owner, attribute)

        def raising(*args, **kw):
            if is_bad(*args, **kw):
                raise Poison("gone\0 wrong")
            return real(*args, **kw)

        monkeypatch.setattr(owner, attribute, raising)
        return lambda: monkeypatch.setattr(owner, attribute, real)

    return set_up


def named(name):
    """Whether some argument is the gang, or the row, of the job with this name."""

    def is_bad(*args, **_):
        for arg in args:
            if getattr(arg, "name", "") == f"default/{name}" or (isinstance(arg, dict) and arg.get("name") == name):
                return True
        return False

    return is_bad


def three(gpus: int = 80):
    cluster = books.a_cluster(gpus=gpus)
    books.apply(*(pytorch_job(name, workers=workers) for name, workers in (("a", 1), ("bad", 2), ("c", 1))))
    return cluster


def states(*names):
    return [books.job(name).state for name in names]


def isolated(step: str) -> float:
    return REGISTRY.get_sample_value("convoy_isolated_failures_total", {"step": step}) or 0.0


STEPS = {
    "snapshot": (snapshot, "_gang"),
    "enqueue": ("jobs.core.scheduling.scheduler", "find_inadmissible_reason"),
    "probe": (PlacementCache, "find"),
    "place": (PlacementCache, "find_with_verdicts"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_gang_that_raises_is_left_out_and_the_others_are_placed(step, poison, monkeypatch):
    three()
    owner, attribute = STEPS[step]
    owner = importlib.import_module(owner) if isinstance(owner, str) else owner
    before = isolated(f"scheduler.{step}")
    heal = poison(owner, attribute, named("bad"))
    now = timezone.now()
    assert books.cycle(now) == 2
    assert states("a", "bad", "c") == ["Placed", "Queued", "Placed"]
    assert isolated(f"scheduler.{step}") > before
    bad = books.job("bad")
    assert bad.reason["code"] == bad.reason_code == "PlanRejected"
    assert "could not be planned: Poison: gone wrong" in bad.reason["message"]
    assert Event.objects.get(reason="PlanRejected").message == bad.reason["message"]
    # It is tried again after a while, and not before: each try costs the cycle.
    count = isolated(f"scheduler.{step}")
    for seconds in (1, 2):
        books.cycle(now + timedelta(seconds=seconds))
    assert isolated(f"scheduler.{step}") == count
    assert books.cycle(now + 1.1 * RETRY_AFTER) == 0
    assert isolated(f"scheduler.{step}") > count
    heal()
    assert books.cycle(now + 2.5 * RETRY_AFTER) == 1
    assert states("bad") == ["Placed"]


def test_a_gang_whose_verdicts_raise_is_left_out_and_the_others_say_why_they_wait(poison):
    three(gpus=1)
    poison(PlacementCache, "verdicts", named("bad"))
    books.cycle()
    assert {job.name: job.reason_code for job in Job.objects.all()} == {
        "a": "NoClusterFits", "bad": "PlanRejected", "c": "NoClusterFits",
    }  # fmt: skip


def test_a_policy_that_cannot_be_read_leaves_out_its_own_jobs_alone(poison):
    three()
    other = Policy.objects.get()
    other.pk, other.name, other.uid = None, "other", uuid4()
    other.manifest = {**other.manifest, "poison": True}
    other.save()
    Job.objects.filter(name="bad").update(policy=other)
    poison(snapshot.policies, "parse_propagation_policy", lambda manifest, *_: "poison" in manifest)
    assert books.cycle() == 2
    assert states("a", "bad", "c") == ["Placed", "Queued", "Placed"]
    assert books.job("bad").reason_code == "PlanRejected"


def test_hundred_gangs_that_raise_cost_one_failure_each_and_hold_up_nothing(poison):
    books.a_cluster(gpus=1000)
    names = [f"bad{number}" for number in range(100)]
    books.apply(
        *(pytorch_job(name, workers=number % 7) for number, name in enumerate(names)), pytorch_job("good", gpus=2)
    )
    poison(Engine, "find", lambda engine, gang, *_: gang.name.startswith("default/bad"))
    before = isolated("scheduler.probe")
    assert books.cycle() == 1
    assert states("good") == ["Placed"]
    assert Job.objects.filter(reason_code="PlanRejected").count() == 100
    assert isolated("scheduler.probe") - before == 7, "gangs that ask the same share one failure"


def test_a_reservation_that_cannot_be_planned_holds_up_nothing(poison):
    three(gpus=3)
    now = timezone.now()
    poison(backfill_reservation, "bigness_test", lambda *_: True)
    assert books.cycle(now) == 1
    books.apply(pytorch_job("small", workers=0))
    assert books.cycle(now + timedelta(hours=3)) == 1
    assert states("a", "small") == ["Placed", "Placed"]


def test_explain_what_if_and_previews_of_others_work_while_one_gang_raises(poison, as_admin):
    three(gpus=1)
    books.cycle()
    heal = poison(Engine, "find", named("bad"))
    books.cycle(timezone.now() + timedelta(seconds=400))
    assert books.job("bad").reason_code == "PlanRejected"
    poison(snapshot, "_gang", named("bad"))
    answer = as_admin.get(f"/api/v1/jobs/{books.job('bad').uid}/explain/")
    assert answer.status_code == 200 and "could not be planned" in answer.json()["message"]
    other = explaining.explain_job(books.job("a"), timezone.now())
    assert other.clusters and not other.clusters[0].fits
    suppose = whatif.Suppose(
        add_nodes=whatif.NewNodes("north", 1, {"cpu": "64", "memory": "1Ti", books.GPU: "8", "pods": "110"})
    )
    assert whatif.simulate_change(suppose, by="test", now=timezone.now()).starts_after == 2
    heal()


def test_a_preemptor_that_raises_keeps_no_other_from_its_right(poison):
    books.a_cluster(gpus=6)
    root = quota("root", WHOLE, WHOLE, books.team("a", 3, 6), books.team("b", 3, 6))
    trees.apply(manifest(root), by="system", now=timezone.now())
    books.apply(job("old", "b"), job("young", "b"))
    books.cycle()
    books.sent()
    Job.objects.update(state="Running", started_at=timezone.now())
    books.apply(job("bad", "a"), job("good", "a"))
    poison(_Planner, "_search", named("bad"))
    books.cycle()
    assert books.job("bad").reason_code == "PlanRejected"
    assert sorted(states("old", "young")) == ["Reclaiming", "Running"]
    books.cycle()
    assert books.job("good").reason_code == "WaitingForReclaim"
