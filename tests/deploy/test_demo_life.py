"""The demo's teams: who submits next, what is removed, and when they rest."""

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deploy.bootstrap.rest import Answer
from deploy.demo import bundle, teamwork
from deploy.demo.life import AT_ONCE, KEPT, MOST, Seen, is_the_demos, plan, take_round
from deploy.demo.teamwork import TEAMS, TEAMWORK
from jobs.kinds import registry
from jobs.models import Job
from quotas.core.trees.parsing import parse_tree

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TREE = yaml.safe_load((bundle.FOLDER / "quota-tree.yaml").read_text())


def ended(work: str, ago_s: float, name: str = "") -> Seen:
    return Seen(name or f"{work}-{ago_s}", work, "Succeeded", NOON - timedelta(seconds=ago_s))


def test_it_submits_a_few_at_a_time_and_each_kind_of_work_once() -> None:
    jobs: list[Seen] = []
    while new := plan(jobs, NOON, calm=True).submit:
        assert len(new) <= AT_ONCE
        jobs += [Seen(work.name, work.name, "Queued", None) for work in new]
    assert Counter(job.work for job in jobs) == Counter(work.name for work in TEAMWORK)


def test_it_waits_a_while_after_a_job_has_ended() -> None:
    first = TEAMWORK[0]
    others = [Seen(work.name, work.name, "Running", None) for work in TEAMWORK[1:]]
    assert plan([*others, ended(first.name, first.pause_s - 1)], NOON, calm=True).submit == ()
    assert plan([*others, ended(first.name, first.pause_s)], NOON, calm=True).submit == (first,)


def test_it_rests_while_a_cluster_is_away() -> None:
    assert plan([], NOON, calm=False).submit == ()


def test_it_keeps_the_latest_that_ended_and_no_job_that_runs() -> None:
    jobs = [ended("lora-sql", ago) for ago in (500, 300, 100)] + [Seen("r", "lora-sql", "Running", None)]
    assert plan(jobs, NOON, calm=True).remove == ("lora-sql-500",)
    assert plan([ended("lora-sql", 3 * 3600)], NOON, calm=True).remove == ("lora-sql-10800",)


@given(st.integers(0, 2**32), st.integers(50, 200))
def test_it_goes_on_for_ever_and_never_piles_up(seed: int, rounds: int) -> None:
    rng, jobs, now = random.Random(seed), [], NOON
    for number in range(rounds):
        now += timedelta(seconds=15)
        found = plan(jobs, now, calm=rng.random() > 0.05)
        jobs = [job for job in jobs if job.id not in found.remove]
        jobs += [Seen(f"{work.name}-{number}", work.name, "Running", None) for work in found.submit]
        jobs = [Seen(j.id, j.work, "Succeeded", now) if not j.has_ended and rng.random() < 0.1 else j for j in jobs]
        assert len(jobs) <= (KEPT + 2) * len(TEAMWORK)
    assert len({job.work for job in jobs}) == len(TEAMWORK)


@pytest.mark.parametrize("work", TEAMWORK, ids=lambda work: work.name)
def test_it_writes_manifests_that_the_fleet_reads(work) -> None:
    body = json.loads(teamwork.manifest(work, random.Random(1)))
    assert body["metadata"]["namespace"] in TEAMS
    found = registry.kind_of(body["apiVersion"], body["kind"]).read(body)
    assert sum(role.replicas * role.request.get("nvidia.com/gpu", 0) for role in found.roles) == work.pods * work.gpus
    assert len(body["metadata"]["name"]) < 40


def test_it_asks_for_more_than_the_fleet_has_in_several_kinds() -> None:
    assert sum(work.pods * work.gpus for work in TEAMWORK) > 60
    assert len({work.kind for work in TEAMWORK}) >= 5 and 8 <= len(TEAMWORK) <= 12


def test_the_quotas_bind_at_what_the_fleet_has_and_list_every_namespace_of_the_demo() -> None:
    tree = parse_tree(TREE).tree
    assert tree is not None and tree.nodes[0].max == {"nvidia.com/gpu": 60}
    assert {space for leaf in tree.leaves for space in leaf.namespaces} == {*TEAMS, "default"}
    assert sum(leaf.min["nvidia.com/gpu"] for leaf in tree.leaves) == 60


def test_the_policy_of_the_teams_selects_every_kind_they_submit() -> None:
    policy = yaml.safe_load((bundle.FOLDER / "teams.yaml").read_text())
    selected = {(each["apiVersion"], each["kind"]) for each in policy["spec"]["resourceSelectors"]}
    bodies = [json.loads(teamwork.manifest(work, random.Random(1))) for work in TEAMWORK]
    assert {(body["apiVersion"], body["kind"]) for body in bodies} <= selected


class Door:
    """The REST API as the process speaks to it, without the socket."""

    def __init__(self, client) -> None:
        self.client = client

    def get(self, path: str) -> Answer:
        answer = self.client.get(f"/api/v1/{path}")
        return Answer(answer.status_code, answer.json())

    def results(self, path: str) -> list[dict]:
        return self.get(path).body["results"]

    def apply(self, manifests: bytes) -> Answer:
        answer = self.client.post("/api/v1/apply", manifests, content_type="application/yaml")
        return Answer(answer.status_code, answer.json())

    def delete(self, path: str) -> Answer:
        return Answer(self.client.delete(f"/api/v1/{path}").status_code, None)


@pytest.mark.django_db
def test_it_submits_through_the_api_what_is_not_there_and_removes_what_is_old(as_admin, north) -> None:
    door, rng = Door(as_admin), random.Random(1)
    assert not is_the_demos(door)
    for name in ("quota-tree.yaml", "teams.yaml"):
        assert door.apply((bundle.FOLDER / name).read_bytes()).ok
    assert is_the_demos(door)
    for _ in range(6):
        take_round(door, NOON, rng)
    assert Counter(Job.objects.values_list("labels__team", flat=True)) == Counter(work.team for work in TEAMWORK)
    Job.objects.update(state=Job.State.SUCCEEDED, finished_at=NOON - timedelta(hours=3))
    removed = take_round(door, NOON, rng).remove
    assert len(removed) == len(TEAMWORK)
    assert Job.objects.filter(uid__in=removed, deleting_at__isnull=True).count() == 0


def test_it_never_goes_over_its_bound_whatever_it_sees() -> None:
    strange = [Seen(str(i), f"unknown-{i}", "Queued", None) for i in range(MOST)]
    assert plan(strange, NOON, calm=True).submit == ()
