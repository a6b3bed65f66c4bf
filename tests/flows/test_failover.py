"""Jobs leave clusters that die and copies that fail, and never run twice where that can be helped."""

from dataclasses import replace

import pytest
from django.utils import timezone

from fleet.member.client import MemberClient
from fleet.models import Cluster, Event, Hold
from fleet.services.clusters import clusters
from jobs.models import Attempt
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import laws
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

GPUS = {"cpu": 10**4, "memory": "9000Gi", "nvidia.com/gpu": 9, "kube-queue/max-jobs": 100}
QUOTAS = manifest(quota("root", GPUS, GPUS, quota("a", GPUS, GPUS, namespaces=["default"])))
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Immediately}}""",
)


def both(world):
    return [world.member(name, 4, time_scale=1.0) for name in ("north", "south")]


def says(world, name: str, words: str) -> bool:
    return words in str(world.job(name).reason or "")


def other(name: str) -> str:
    return {"north": "south", "south": "north"}[name]


def test_it_runs_the_jobs_of_a_cluster_that_died_elsewhere_and_removes_the_copy_that_comes_back(world):
    both(world)
    world.apply(FAILOVER, pytorch_job("llama", duration="10h"))
    home = str(world.expect("llama", "Running").cluster)
    world.members[home].faults.away = True
    job = world.expect("llama", "Running", on=other(home))
    assert job.attempt == 2
    world.members[home].faults.away = False
    world.until(lambda: world.copies() == {home: [], other(home): ["llama"]}, "one copy is left")
    assert world.job("llama").state == "Running" and world.job("llama").attempt == 2


def test_it_stays_when_the_cluster_is_back_before_the_toleration_is_over(world):
    world.member("north", 4, time_scale=1.0)
    world.apply(POLICY.replace("tolerationSeconds: 1", "tolerationSeconds: 600"), pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    world.members["north"].faults.away = True
    world.until(lambda: Cluster.objects.get(name="north").state != "Ready", "north is missed")
    world.members["north"].faults.away = False
    world.until(lambda: Cluster.objects.get(name="north").state == "Ready", "north is back")
    assert world.expect("llama", "Running", on="north").attempt == 1


def test_it_goes_on_with_a_copy_whose_lost_cluster_returned_before_another_place_was_found(world):
    world.member("north", 4, time_scale=1.0)
    world.apply(FAILOVER, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    world.members["north"].faults.away = True
    world.expect("llama", "Moving")
    world.members["north"].faults.away = False
    assert world.expect("llama", "Running", on="north").attempt == 1


def test_it_neither_kills_nor_repeats_jobs_of_a_queue_whose_cluster_was_away(world):
    """One runs on while its cluster is away, the other succeeds meanwhile; both have left for their queue by then."""
    world.member("north", 4, time_scale=1.0)
    trees.apply(QUOTAS, by="system", now=timezone.now())
    through_queue = FAILOVER.replace("  propagateDeps", "  suspension: {scheduling: true}\n  propagateDeps")
    world.apply(through_queue, pytorch_job("llama", duration="10h"), pytorch_job("bert", workers=0, duration="10h"))
    world.expect("llama", "Running")
    world.expect("bert", "Running")
    world.members["north"].faults.away = True
    world.expect("llama", "Queued"), world.expect("bert", "Queued")
    world.finish("bert")
    inside = MemberClient(world.members["north"]._server.inner_access())
    bert = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/bert"
    world.until(lambda: "Succeeded" in str(inside.get(bert)["status"]), "bert has ended unseen")
    world.members["north"].faults.away = False
    assert world.expect("llama", "Running", on="north").attempt == 1
    assert world.expect("bert", "Succeeded").attempt == 1


def test_it_moves_the_jobs_of_a_drained_cluster_and_comes_back_to_it_once_it_is_open_again(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.1)
    both(world)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    home = Cluster.objects.get(name=str(world.expect("llama", "Running").cluster))
    clusters.drain(home, by="ada", now=timezone.now())
    world.expect("llama", "Running", on=other(home.name))
    assert Event.objects.filter(message__contains=f"{home.name} is drained").exists()
    first = Attempt.objects.get(job__name="llama", number=1)
    assert (first.outcome, first.cause, first.incident) == ("Drained", "", None), "maintenance, and no fault"
    world.until(lambda: world.copies() == {home.name: [], other(home.name): ["llama"]}, "one copy is left")
    world.apply(pytorch_job("bert", workers=0, gpus=4, duration="10h"))
    world.until(lambda: says(world, "bert", "convoy.dev/drained"), "bert finds no place")
    clusters.reopen(home, by="ada", now=timezone.now())
    world.expect("bert", "Running", on=home.name)


def test_a_job_goes_on_where_it_is_when_the_drain_is_lifted_before_it_has_another_place(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.1)
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    home = Cluster.objects.get(name="north")
    clusters.drain(home, by="ada", now=timezone.now())
    world.expect("llama", "Moving")
    clusters.reopen(home, by="ada", now=timezone.now())
    assert world.expect("llama", "Running", on="north").attempt == 1


def test_it_moves_a_job_that_failed_and_excludes_the_cluster_it_failed_on(world):
    for name in ("north", "south"):
        world.member(name, 4)
    world.apply(
        FAILOVER,
        pytorch_job("llama", workers=0, duration="1s", **{"convoy.dev/exit-code": "1"}).replace(
            "template:", "restartPolicy: Never\n      template:"
        ),
    )
    world.until(lambda: Attempt.objects.filter(job__name="llama").count() >= 2, "there is a second attempt")
    first, second = Attempt.objects.filter(job__name="llama").order_by("number")[:2]
    assert first.outcome == "Failed" and second.cluster_name == other(first.cluster_name)


def test_it_fails_for_good_without_a_failover_policy(world):
    world.member("north", 4)
    world.apply(
        POLICY,
        pytorch_job("llama", workers=0, duration="1s", **{"convoy.dev/exit-code": "1"}).replace(
            "template:", "restartPolicy: Never\n      template:"
        ),
    )
    assert world.expect("llama", "Failed").attempt == 1


def test_it_ends_a_job_that_failed_too_often(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, max_attempts=2)
    for name in ("north", "south"):
        world.member(name, 4)
    world.apply(
        FAILOVER,
        pytorch_job("llama", workers=0, duration="1s", **{"convoy.dev/exit-code": "1"}).replace(
            "template:", "restartPolicy: Never\n      template:"
        ),
    )
    assert world.expect("llama", "Failed").reason["code"] == "AttemptsExhausted"


def test_it_moves_a_job_whose_pods_only_restart_and_fails_it_when_that_helps_nothing(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, crash_loop_restarts=2)
    for name in ("north", "south"):
        world.member(name, 4)
    crashing = pytorch_job("llama", workers=0, duration="1s", **{"convoy.dev/exit-code": "1"})
    world.apply(FAILOVER, crashing.replace("template:", "restartPolicy: OnFailure\n      template:"))
    assert world.expect("llama", "Failed").reason["code"] == "AttemptsExhausted"
    first, second = Attempt.objects.filter(job__name="llama").order_by("number")
    assert second.cluster_name == other(first.cluster_name)
    assert {first.cause, second.cause} == {"CodeError"} and first.evidence[0]["exit_code"] == 1
    world.until(lambda: world.copies() == {"north": [], "south": []}, "its copies are gone")


def test_it_stops_a_copy_that_restarts_for_ever_when_the_attempts_are_spent(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, max_attempts=1)
    world.member("north", 4, time_scale=1.0)
    endless = pytorch_job("llama", workers=0, duration="1s", **{"convoy.dev/exit-code": "137"})
    world.apply(FAILOVER, endless.replace("template:", "restartPolicy: ExitCode\n      template:"))
    assert world.expect("llama", "Failed", patience_s=120).reason["code"] == "AttemptsExhausted"
    world.until(lambda: world.copies() == {"north": []} and not world.pods("north"), "its copy is gone")
    world.until(lambda: not Hold.objects.filter(released_at__isnull=True).exists(), "nothing is held")
    laws.terminal_holds_nothing()


def test_it_places_a_job_again_whose_copy_somebody_deleted_in_the_member(world):
    world.member("north", 4, time_scale=1.0)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    world.clients["north"].delete("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/llama")
    world.until(lambda: world.job("llama").attempt == 2 and world.job("llama").state == "Running", "it runs again")
    assert world.copies() == {"north": ["llama"]}


def test_it_never_makes_a_finished_job_again_when_its_copy_is_deleted(world):
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("llama", duration="1s"))
    world.expect("llama", "Succeeded")
    world.clients["north"].delete("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/llama")
    world.until(lambda: world.copies() == {"north": []}, "the copy is gone")
    assert world.expect("llama", "Succeeded").attempt == 1
