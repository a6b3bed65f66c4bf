"""The Job controller's decisions."""

from typing import Any

import pytest

from simulator.operators.job.plan import Decision, Times, decide, index_of, pod_of
from tests.simulator.operators.operator_cases import NOW, truths


def job(**spec: Any) -> dict:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}
    return {"metadata": {"name": "sweep", "namespace": "ai", "uid": "u1"}, "spec": {"template": template, **spec}}


def pods(given: dict, *phases: str, indexed: bool = False) -> list[dict]:
    made = [pod_of(given, i if indexed else None, i) for i in range(len(phases))]
    return [{**pod, "status": {"phase": phase}} for pod, phase in zip(made, phases, strict=True)]


def decided(given: dict, there: list[dict], now: float = NOW, **known: Any) -> Decision:
    return decide(given, there, Times(now=now, real=lambda s: s, **{"started": NOW, "completed": None, **known}))


@pytest.mark.parametrize(
    ("spec", "phases", "created"),
    [
        ({}, [], 1),
        ({"parallelism": 3, "completions": 5}, [], 3),
        ({"parallelism": 3, "completions": 5}, ["Succeeded", "Succeeded", "Succeeded"], 2),
        ({"parallelism": 3, "completions": 5}, ["Running", "Running", "Succeeded"], 1),
        ({"parallelism": 3, "completions": 2}, [], 2),
        ({"parallelism": 3}, ["Running"], 2),
        ({"parallelism": 3}, ["Succeeded", "Running"], 0),
        ({"parallelism": 0, "completions": 2}, [], 0),
    ],
)
def test_it_keeps_as_many_pods_as_it_may(spec: dict, phases: list[str], created: int) -> None:
    given = job(**spec)
    assert len(decided(given, pods(given, *phases)).create) == created


def test_of_fewer_pods_it_ends_those_first_that_do_not_run() -> None:
    given = job(parallelism=2, completions=9)
    there = pods(given, "Pending", "Running", "Running", "Pending", "Running")
    for pod in there[:2] + there[3:]:
        pod["spec"]["nodeName"] = "n"
    names = [pod["metadata"]["name"] for pod in there]
    assert decided(given, there).delete == [names[2], names[3], names[0]]


def test_it_completes() -> None:
    given = job(parallelism=2, completions=2)
    decision = decided(given, pods(given, "Succeeded", "Succeeded"))
    assert truths({"status": decision.status}) == ["Complete"]
    assert (decision.status["succeeded"], "active" in decision.status) == (2, False)
    assert decision.status["completionTime"]


def test_it_gives_each_index_one_pod() -> None:
    given = job(parallelism=3, completions=3, completionMode="Indexed")
    there = pods(given, "Succeeded", indexed=True)
    made = decided(given, there).create
    assert [index_of(pod) for pod in made] == [1, 2]
    assert made[0]["metadata"]["name"].startswith("sweep-1-")
    assert made[0]["spec"]["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "value": "1"}]


def test_it_names_pods_so_that_a_second_try_is_the_same_pod() -> None:
    given = job(parallelism=2, completions=2)
    names = [[pod["metadata"]["name"] for pod in decided(given, []).create] for _ in range(2)]
    assert names[0] == names[1]
    assert len(set(names[0])) == 2


def test_it_pauses_after_a_failure_and_then_tries_again() -> None:
    given = job()
    there = pods(given, "Failed")
    paused = decided(given, there, NOW + 4, last_failure=NOW)
    assert (paused.create, paused.again_s) == ([], pytest.approx(6, abs=0.01))
    assert len(decided(given, there, NOW + 10, last_failure=NOW).create) == 1


def test_it_fails_when_it_failed_too_often() -> None:
    given = job(backoffLimit=1, parallelism=2, completions=5)
    decision = decided(given, pods(given, "Failed", "Failed", "Running"), NOW + 99)
    condition = decision.status["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert len(decision.delete) == 1


def test_it_fails_at_the_deadline() -> None:
    given = job(activeDeadlineSeconds=5)
    decision = decided(given, pods(given, "Running"), NOW + 5)
    assert decision.status["conditions"][0]["reason"] == "DeadlineExceeded"
    assert len(decision.delete) == 1


def test_it_suspends_and_resumes() -> None:
    given = job(suspend=True)
    decision = decided(given, pods(given, "Running"))
    assert (truths({"status": decision.status}), len(decision.delete)) == (["Suspended"], 1)
    assert "startTime" not in decision.status
    again = {**given, "spec": {**given["spec"], "suspend": False}, "status": decision.status}
    resumed = decided(again, [], NOW + 50, started=None)
    assert (truths({"status": resumed.status}), len(resumed.create)) == ([], 1)


def test_it_expires_after_its_time_to_live() -> None:
    given = job(ttlSecondsAfterFinished=10)
    given["status"] = decided(given, pods(given, "Succeeded")).status
    assert not decided(given, [], NOW + 9, completed=NOW).expired
    assert decided(given, [], NOW + 10, completed=NOW).expired
