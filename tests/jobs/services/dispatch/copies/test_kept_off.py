"""A node that is excluded while a job runs is not met by the pods that replace others of the same attempt."""

import json
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.kube.resources import JOBS, PYTORCH_JOBS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberRefused
from fleet.models import Cluster, Event, NodeExclusion
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.dispatch.copies import kept_off
from jobs.services.follow import sweep
from jobs.services.scheduling.decisions import lease
from tests.jobs.services import resizing as elastic
from tests.jobs.services.resizing import order
from tests.support import books
from tests.support.world import World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else."""
    world = World(tmp_path)
    world.still("north", 64)
    yield world
    world.stop()


def run(name: str, manifest: str) -> Job:
    books.apply(manifest)
    books.cycle()
    push(name)
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    return books.job(name)


def push(name: str) -> bool:
    return dispatcher.push(order(name).pk, timezone.now)


def exclude(node: str = "bad", job: Job | None = None) -> NodeExclusion:
    fault = Fault("k", timezone.now(), ExclusionReason.NODE_CHECK, "it failed")
    cluster = Cluster.objects.get()
    node_exclusions.report(cluster, node, fault, fault.at, job and job.uid)
    return NodeExclusion.objects.get(node=node, job_uid=job and job.uid)


def lift(exclusion: NodeExclusion) -> None:
    node_exclusions.lift(exclusion, by="ann", now=timezone.now())


def swept() -> None:
    kept_off.order(timezone.now())


def required(world: World, name: str = "llama", resource=PYTORCH_JOBS) -> list:
    """What each template of the copy requires of its node."""
    spec = world.clients["north"].get(resource.path("default", name))["spec"]
    templates = [r["template"] for r in spec.get("pytorchReplicaSpecs", {}).values()] or [spec["template"]]
    affinity = [(t["spec"].get("affinity") or {}).get("nodeAffinity") or {} for t in templates]
    return [
        each.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms") for each in affinity
    ]


def off(*hostnames: str) -> list:
    return [{"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": list(hostnames)}]}]


def test_an_exclusion_reaches_the_templates_of_a_copy_that_runs_and_leaves_them_when_it_ends(world):
    run("llama", pytorch_job("llama"))
    assert required(world) == [None, None]
    excluded = exclude()
    swept()
    assert push("llama") and required(world) == [off("bad"), off("bad")]
    swept()
    assert not push("llama"), "an exclusion is ordered once"
    lift(excluded)
    sweep.run(timezone.now())
    assert push("llama") and required(world) == [None, None]


def test_an_exclusion_for_one_job_reaches_its_copy_alone(world):
    llama = run("llama", pytorch_job("llama"))
    run("bert", pytorch_job("bert"))
    exclude(job=llama)
    swept()
    assert push("llama") and not push("bert")
    assert required(world, "bert") == [None, None]


def test_what_a_job_requires_of_its_nodes_itself_stays(world):
    own = [
        {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": ["mine"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
    ]
    manifest = yaml.safe_load(pytorch_job("llama", workers=0))
    template = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}}
    template["spec"]["affinity"] = affinity
    run("llama", yaml.safe_dump(manifest))
    excluded = exclude()
    swept()
    push("llama")
    condition = off("bad")[0]["matchExpressions"]
    assert required(world) == [[{"matchExpressions": [*term["matchExpressions"], *condition]} for term in own]]
    lift(excluded)
    swept()
    push("llama")
    assert required(world) == [own]


@pytest.mark.parametrize("times", [1, 2])
def test_a_job_that_keeps_off_the_same_node_itself_does_so_as_often_as_it_says(world, times):
    own = {"key": HOSTNAME, "operator": "NotIn", "values": ["bad"]}
    terms = [{"matchExpressions": [own] * times}, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    manifest = yaml.safe_load(pytorch_job("llama", workers=0))
    template = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    template["spec"]["affinity"] = affinity
    job, excluded = run("llama", yaml.safe_dump(manifest)), exclude()
    swept()
    assert push("llama")
    kept_off.follow(world.clients["north"], order("llama"), job)
    [[of_author, other]] = required(world)
    assert of_author == terms[0] and other["matchExpressions"] == [*terms[1]["matchExpressions"], own]
    lift(excluded)
    swept()
    assert push("llama") and required(world) == [terms]


def test_a_copy_of_a_finished_job_is_left_alone(world):
    run("llama", pytorch_job("llama"))
    Job.objects.update(state=Job.State.SUCCEEDED, finished_at=timezone.now())
    exclude()
    swept()
    assert not push("llama") and order("llama").avoided_nodes is None


def test_a_member_that_refuses_it_says_so_once_and_still_resizes_the_copy(world, monkeypatch):
    run("llama", elastic.elastic("llama", 3))
    elastic.resize("llama", 2)
    exclude()
    swept()
    merge_patch = MemberClient.merge_patch

    def refuse(client, path, body):
        if "affinity" in json.dumps(body):
            raise MemberRefused("templates are fixed here", status=422, reason="Invalid")
        return merge_patch(client, path, body)

    monkeypatch.setattr(MemberClient, "merge_patch", refuse)
    assert push("llama") and not push("llama")
    assert required(world) == [None] and order("llama").resize_done == order("llama").resize_wanted
    copy = world.clients["north"].get(PYTORCH_JOBS.path("default", "llama"))
    assert copy["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 2
    [event] = Event.objects.filter(reason="ChangeRefused")
    assert (
        "does not keep new pods off excluded nodes: " in event.message and "templates are fixed here" in event.message
    )


def test_a_worker_that_died_after_the_patch_leaves_an_order_that_the_next_one_finds_carried_out(world, monkeypatch):
    job = run("llama", pytorch_job("llama"))
    exclude()
    swept()
    work = order("llama")
    kept_off.follow(world.clients["north"], work, job)
    before = world.clients["north"].get(PYTORCH_JOBS.path("default", "llama"))["metadata"]["resourceVersion"]
    assert push("llama")
    after = world.clients["north"].get(PYTORCH_JOBS.path("default", "llama"))["metadata"]["resourceVersion"]
    assert before == after and order("llama").resize_done == order("llama").resize_wanted


def test_a_kind_whose_templates_cannot_change_is_left_alone_unless_it_is_not_sent_yet(world):
    run("work", elastic.batch("work", 2))
    books.apply(elastic.batch("later", 2))
    books.cycle()
    exclude()
    swept()
    assert not push("work") and required(world, "work", JOBS) == [None]
    push("later")
    assert required(world, "later", JOBS) == [off("bad")]


def test_an_exclusion_that_ends_while_copies_are_ordered_is_ordered_again(world, monkeypatch):
    run("llama", pytorch_job("llama"))
    excluded = exclude()
    monkeypatch.setattr(lease, "wait_for_writers", lambda: lift(excluded))
    swept()
    monkeypatch.undo()
    assert not NodeExclusion.objects.get().is_ordered
    swept()
    assert NodeExclusion.objects.get().is_ordered
    push("llama")
    assert required(world) == [None, None]


def test_copies_of_a_cluster_are_ordered_by_few_statements_however_many_they_are(world, django_assert_max_num_queries):
    now = timezone.now()
    cluster = Cluster.objects.get()
    fields = {"api_version": "kubeflow.org/v1", "kind": "PyTorchJob", "namespace": "default", "cluster": cluster}
    Work.objects.bulk_create(
        Work(job_uid=f"00000000-0000-0000-0000-{n:012}", attempt=1, name=f"j{n}", state="Applied", due_at=now,
             created_at=now - timedelta(hours=1), **fields)
        for n in range(600)
    )  # fmt: skip
    for n in range(20):
        exclude(f"bad-{n}")
    with django_assert_max_num_queries(40):
        swept()
    assert {len(work.avoided_nodes or ()) for work in Work.objects.all()} == {20}
