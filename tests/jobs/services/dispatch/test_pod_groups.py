"""A PodGroup of a person travels with the jobs whose pods name it as their gang, and leaves a member with the last of them."""

import pytest
import yaml
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kube.resources import PYTORCH_JOBS, SIGS_POD_GROUPS
from fleet.member.errors import MemberMissing
from fleet.models import Cluster
from jobs.models import Work
from jobs.services.dispatch import dispatcher
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.world import POLICY, World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATH = SIGS_POD_GROUPS.path("default", "torch-mnist-gang")
GROUP = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: torch-mnist-gang}
spec: {scheduleTimeoutSeconds: 100, minMember: 3}
"""


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else."""
    world = World(tmp_path)
    world.still("north", 64)
    yield world
    world.stop()


def naming_the_group(name: str) -> str:
    body = yaml.safe_load(pytorch_job(name))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        note = {"gang.scheduling.koordinator.sh/name": "torch-mnist-gang"}
        role["template"]["metadata"] = {"annotations": note}
    return yaml.safe_dump(body)


def push_all() -> None:
    for _ in range(3):
        Work.objects.update(due_at=timezone.now())
        for work in Work.objects.order_by("pk"):
            dispatcher.push(work.pk, timezone.now)


def sent(world: World, *names: str) -> dict:
    books.apply(POLICY, GROUP, *map(naming_the_group, names))
    books.cycle()
    push_all()
    return world.clients["north"].get(PATH)


def test_it_is_in_the_member_with_its_job_and_leaves_with_the_last(world):
    assert sent(world, "one", "two")["spec"] == {"scheduleTimeoutSeconds": 100, "minMember": 3}
    actions.delete(books.job("one"), by="ada", now=timezone.now())
    push_all()
    world.clients["north"].get(PATH)
    actions.delete(books.job("two"), by="ada", now=timezone.now())
    push_all()
    with pytest.raises(MemberMissing):
        world.clients["north"].get(PATH)


def test_the_fleet_makes_no_group_of_its_own_beside_it(world):
    sent(world, "one")
    listed = world.clients["north"].list(SIGS_POD_GROUPS.path("default"))["items"]
    assert [each["metadata"]["name"] for each in listed] == ["torch-mnist-gang"]


def test_a_member_that_does_not_serve_it_gets_the_job_without(world):
    cluster = Cluster.objects.get()
    apis = {version: kinds for version, kinds in cluster.apis.items() if version != SIGS_POD_GROUPS.api_version}
    Cluster.objects.update(apis=apis)
    books.apply(POLICY, GROUP, naming_the_group("one"))
    books.cycle()
    push_all()
    assert Work.objects.get().state == "Applied"


def test_its_least_number_is_checked():
    with pytest.raises(InvalidInput, match="spec.minMember must be the number of pods that start together"):
        books.apply(GROUP.replace("minMember: 3", "minMember: 0"))


@pytest.mark.parametrize("named", [True, False], ids=["named for the cluster", "the default one"])
def test_pods_of_a_group_that_the_fleet_makes_name_the_scheduler_that_acts_on_it(world, named):
    """As the annotation of the cluster says; only a group of scheduler-plugins is acted on by another scheduler."""
    Cluster.objects.update(annotations={"convoy.dev/gang-scheduler": "coscheduling"} if named else {})
    books.apply(POLICY, pytorch_job("llama"))
    books.cycle()
    push_all()
    copy = world.clients["north"].get(PYTORCH_JOBS.path("default", "llama"))
    specs = [role["template"]["spec"] for role in copy["spec"]["pytorchReplicaSpecs"].values()]
    assert {spec.get("schedulerName") for spec in specs} == {"coscheduling" if named else None}
