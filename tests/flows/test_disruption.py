"""Our own network fails, or one member does: the fleet's judgement with real requests and the clock as an argument.

All members are one simulated API server under many names, so that a hundred of them are cheap to cut off.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from fleet.models import Cluster, Event
from fleet.services.clusters import health as cluster_health
from fleet.services.members import member_clients
from jobs.models import Attempt, EvictionWindow, Job, Work
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import health
from jobs.services.scheduling import loop
from simulator.apiserver import ApiServer
from tests.support import books
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
NOWHERE = "https://127.0.0.1:1"


class Fleet:
    """Each member runs one job that fills it; ``spare`` members run none."""

    def __init__(self, server: ApiServer, members: int, spare: int = 0) -> None:
        self.server, self.start = server, timezone.now()
        access = member_clients.stored(server.access())
        names = [f"m{i:03}" for i in range(members + spare)]
        with transaction.atomic():
            for name in names:
                Cluster.objects.filter(pk=books.a_cluster(name, gpus=8).pk).update(
                    access=access, state_reason="ClusterReady", discovered_at=self.start
                )
            books.apply(POLICY, *(pytorch_job(f"job-{i}", workers=0, gpus=8) for i in range(members)))
        loop._idle_caches.clear()
        assert books.cycle() == members
        Work.objects.update(state=Work.State.APPLIED, applied_at=self.start)
        Job.objects.update(state=Job.State.RUNNING, started_at=self.start)
        Attempt.objects.update(started_at=self.start)
        self.run(0)

    def run(self, *seconds: float) -> None:
        for each in seconds:
            now = self.start + timedelta(seconds=each)
            Cluster.objects.update(looked_at=now)  # the looks in between, which found what the one before them found
            cluster_health.check_all(now)
            sweep.run(now)

    def lose(self, *jobs: str) -> list[str]:
        """Cuts off the members of these jobs alone; their names."""
        names = list(Cluster.objects.filter(jobs_here__name__in=jobs).values_list("name", flat=True))
        access = {**member_clients.stored(self.server.access()), "server": NOWHERE}
        for row in Cluster.objects.filter(name__in=names):
            row.access = access
            row.save(update_fields=["access"])
        return names

    def restore(self) -> None:
        for row in Cluster.objects.all():
            row.access = member_clients.stored(self.server.access())
            row.save(update_fields=["access"])


@pytest.fixture
def fleet(tmp_path, monkeypatch, settings):
    settings.CONVOY_MEMBERS = replace(settings.CONVOY_MEMBERS, discovery_interval_s=999 * 86400)
    monkeypatch.setattr(member_clients, "_clients", {})
    server = ApiServer("member", tmp_path / "member")
    server.start()
    yield lambda members, spare=0: Fleet(server, members, spare)
    server.stop()


def moved() -> int:
    return Attempt.objects.filter(outcome="Lost").count()


def states() -> set[tuple[str, int]]:
    return set(Job.objects.values_list("state", "attempt"))


def test_it_moves_none_of_100_jobs_when_100_members_are_cut_off_for_half_an_hour(fleet, as_admin):
    made = fleet(100)
    made.server.faults.away = True
    made.run(2, 13, 71, 80, 600, 1800)
    assert moved() == 0 and states() == {("Running", 1)}
    row = Cluster.objects.first()
    assert (row.state, row.state_reason) == ("Unknown", "DisruptionSuspected")
    assert "100 of 100 clusters stopped answering together" in row.state_message
    assert {t["effect"] for t in row.taints} == {"NoSchedule"}
    assert Event.objects.filter(reason="DisruptionSuspected").count() == 100
    system = as_admin.get("/api/v1/system/").json()
    members = next(check for check in system["checks"] if check["name"] == "members")
    assert not system["ok"] and "and 95 more" in members["detail"]
    made.server.faults.away = False
    made.run(1802)
    assert set(Cluster.objects.values_list("state", flat=True)) == {"Ready"} and moved() == 0
    assert not any(Cluster.objects.values_list("taints", flat=True))


def test_it_moves_the_jobs_of_one_member_of_many_as_ever(fleet):
    made = fleet(10, spare=2)
    [lost] = made.lose("job-3")
    made.run(2, 13, 60)
    assert moved() == 0
    made.run(80)
    assert moved() == 1 and Cluster.objects.get(name=lost).state_reason == "ClusterNotReachable"
    books.cycle()
    assert books.job("job-3").state == "Placed" and books.job("job-3").attempt == 2


def test_it_counts_the_toleration_anew_for_those_that_stay_away_when_the_others_are_back(fleet):
    made = fleet(8, spare=1)
    made.server.faults.away = True
    made.run(2, 13, 600)
    made.server.faults.away = False
    made.lose("job-3")
    made.run(610, 665)
    assert moved() == 0
    made.run(675)
    assert moved() == 1 and books.job("job-3").attempt == 1


def test_it_spares_the_first_that_fell_silent_when_the_others_follow(fleet):
    made = fleet(6)
    made.lose("job-0")
    made.run(2, 14)
    assert "NoExecute" in str(Cluster.objects.get(jobs_here__name="job-0").taints)
    made.server.faults.away = True
    made.run(20, 32, 75, 600)
    assert moved() == 0


def test_a_lost_look_at_the_others_restarts_no_toleration(fleet):
    made = fleet(2)
    made.lose("job-0")
    made.run(2, 14)
    made.server.faults.away = True
    made.run(20)
    made.server.faults.away = False
    made.run(22, 75)
    assert moved() == 1


@pytest.mark.parametrize(("members", "lost", "count"), [(2, 2, 0), (2, 1, 1), (1, 1, 1), (3, 2, 2), (4, 3, 0)])
def test_it_judges_small_fleets(fleet, members, lost, count):
    made = fleet(members)
    made.lose(*(f"job-{i}" for i in range(lost)))
    made.run(2, 13, 80)
    assert moved() == count


def test_it_adopts_what_runs_on_when_the_only_member_is_back(fleet):
    made = fleet(1)
    made.server.faults.away = True
    made.run(2, 13, 80)
    assert states() == {("Moving", 1)}
    made.server.faults.away = False
    made.run(90)
    assert states() == {("Running", 1)} and set(Work.objects.values_list("state", flat=True)) == {"Applied"}


def test_it_lets_so_many_a_minute_leave_a_cluster_and_says_so(fleet, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, evictions_per_minute=2)
    made = fleet(5, spare=6)
    home = Cluster.objects.get(jobs_here__name="job-0")
    Job.objects.update(cluster=home), Work.objects.update(cluster=home)
    made.lose("job-0")
    made.run(2, 13, 80)
    assert moved() == 2
    made.run(90, 100)
    assert moved() == 2 and Event.objects.filter(reason="EvictionsLimited").count() == 1
    made.run(141)
    assert moved() == 4 and EvictionWindow.objects.get().count == 3
    made.run(-3600)
    assert moved() == 4
    made.run(202)
    assert moved() == 5


def test_it_counts_no_job_against_the_rate_that_another_pass_has_moved(fleet):
    made = fleet(4, spare=4)
    made.lose("job-0")
    jobs = list(Job.objects.filter(name="job-0").select_related("policy"))
    lost, now = jobs[0].cluster, timezone.now()
    assert [health._leave_lost(lost, jobs, now) for _ in range(2)] == [(1, True), (0, True)]
    assert EvictionWindow.objects.get().count == 1


def test_health_of_jobs_alone_moves_nobody_while_a_disruption_lasts(fleet):
    """A second worker, and one that was just started, judge by the same rows."""
    made = fleet(4)
    made.server.faults.away = True
    made.run(2, 13)
    assert health.check(made.start + timedelta(hours=1)) == 0
