"""How urgent a job may be: classes that are known, and ceilings by queue and role; whatever else the job states."""

import pytest
import yaml
from django.utils import timezone

from fleet.errors import Forbidden, InvalidInput
from fleet.models import Grant
from jobs.models import Job
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import queue_moves
from quotas.models import QuotaGrant
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import team
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", books.GPU: 1000, "kube-queue/max-jobs": 1000}
CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 500}
PRIORITY = "convoy.dev/priority"


@pytest.fixture(autouse=True)
def people(db):
    """eve submits; lea leads root/a; ada is a fleet admin."""
    person("eve", (Grant.Role.EDITOR, "default"))
    QuotaGrant.objects.create(user=person("lea", (Grant.Role.EDITOR, "default")), path="root/a")
    person("ada", superuser=True)


def apply_tree(*children: dict, **fields: object) -> None:
    trees.apply(manifest(quota("root", WHOLE, WHOLE, *children, **fields)), by="system", now=timezone.now())


def apply(*documents: dict, by: str = "eve") -> list[submit.Applied]:
    text = "\n---\n".join(yaml.safe_dump(document) for document in documents)
    return submit.apply(manifests.parse(text.encode()), by=by, now=timezone.now())


def a_job(name: str = "llama", *, run: str = "", pods: str = "", value: int | None = None, leaf: str = "") -> dict:
    body = yaml.safe_load(pytorch_job(name))
    body["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/name": leaf} if leaf else {}
    if run:
        body["spec"]["runPolicy"] = {"schedulingPolicy": {"priorityClass": run}}
    if pods:
        for role in body["spec"]["pytorchReplicaSpecs"].values():
            role["template"]["spec"]["priorityClassName"] = pods
    if value is not None:
        body["metadata"]["annotations"] = {PRIORITY: str(value)}
    return body


@pytest.mark.parametrize("named", [{"run": "best"}, {"pods": "best"}, {"pods": "best", "value": 0}])
def test_it_refuses_a_class_that_the_fleet_does_not_know(named):
    with pytest.raises(InvalidInput, match="PriorityClass best is unknown to the fleet") as refusal:
        apply(a_job(**named))
    assert refusal.value.faults[0].field == "priorityClassName" and not Job.objects.exists()


@pytest.mark.parametrize("named", [{"run": "high"}, {"pods": "high"}])
def test_it_takes_the_value_of_a_class_of_the_fleet_also_of_the_same_file(named):
    apply(a_job(**named), CLASS)
    assert books.job("llama").priority == 500


def test_a_class_of_the_tree_comes_before_that_of_the_fleet():
    apply(CLASS)
    apply_tree(team("a", namespaces=["default"], attributes={"priority-classes": '{"high": 7}'}))
    apply(a_job(run="high"))
    assert books.job("llama").priority == 7


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"value": "5"}, "value must be a whole number"),
        ({"value": True}, "value must be a whole number"),
        ({"value": 10**9 + 1}, "value must be a whole number"),
        ({"value": None}, "value must be a whole number"),
        ({"metadata": {"name": "system-mine"}}, "metadata.name must not begin with system-"),
        ({"globalDefault": True}, "globalDefault is not supported"),
        ({"preemptionPolicy": "Never"}, "preemptionPolicy is not supported"),
        ({"metadata": {}}, "metadata.name"),
        ({"metadata": None}, "metadata"),
    ],
    ids=str,
)
def test_it_refuses_a_class_that_it_could_not_act_by(fields, fault):
    with pytest.raises(InvalidInput, match=fault):
        apply({**CLASS, **fields})


@pytest.mark.parametrize(
    "more", [{"run": "system-node-critical"}, {"pods": "system-cluster-critical"}, {"pods": "system-x", "value": 0}]
)
def test_pods_name_no_class_of_the_clusters_themselves(more):
    with pytest.raises(InvalidInput, match="its pods evict those of all tenants"):
        apply(a_job(**more), by="ada")


def bounded(ceiling: object, **fields: object) -> None:
    apply_tree(team("a", namespaces=["default"], attributes={"max-priority": str(ceiling)}), team("open"), **fields)


BY_ROLE = '{"editor": 100, "team-lead": 1000}'


@pytest.mark.parametrize(
    ("ceiling", "by", "most"),
    [
        (50, "eve", 50), (50, "lea", 50), (50, "ada", 50), (BY_ROLE, "eve", 100), (BY_ROLE, "lea", 1000),
        (BY_ROLE, "ada", 2**31 - 1), (BY_ROLE, "the product", 2**31 - 1),
    ],
)  # fmt: skip
def test_a_job_is_as_urgent_as_queue_and_role_allow_and_no_more(ceiling, by, most):
    bounded(ceiling)
    apply(a_job(value=most), by=by)
    assert books.job("llama").priority == most
    if most < 2**31 - 1:
        with pytest.raises(Forbidden, match=f"{by} may not give .* at most {most} there .max-priority of quota root/a"):
            apply(a_job("more", value=most + 1), by=by)


def test_without_a_tree_everyone_but_a_fleet_admin_is_bounded_by_the_setting():
    with pytest.raises(Forbidden, match="editors may have at most 1000000000 there .CONVOY_MAX_PRIORITY"):
        apply(a_job(value=2**31 - 1))
    apply(a_job(value=2**31 - 1), by="ada")


def test_a_class_that_members_would_act_on_counts_although_the_job_states_less():
    bounded(100)
    apply(CLASS)
    with pytest.raises(Forbidden, match="the priority 500"):
        apply(a_job(pods="high", value=0))


def test_a_ceiling_is_only_lowered_below():
    bounded(1000, attributes={"max-priority": "10"})
    with pytest.raises(Forbidden, match="at most 10 there"):
        apply(a_job(value=11))


def test_a_job_does_not_rise_above_the_ceiling_by_a_change_or_a_move():
    bounded(100)
    apply(a_job(value=100))
    with pytest.raises(Forbidden):
        apply(a_job(value=101))
    with pytest.raises(Forbidden):
        apply(a_job("urgent", leaf="open"), a_job("urgent", value=101))
    apply(a_job("urgent", value=900, leaf="open"))
    with pytest.raises(Forbidden, match="eve may not give .*urgent the priority 900"):
        queue_moves.move(books.job("urgent"), "root/a", by="eve", now=timezone.now())
    with pytest.raises(Forbidden):
        apply(a_job("urgent", value=900))
    assert books.job("urgent").leaf == "root/open"


def test_a_job_that_is_in_stays_when_its_class_goes_or_its_ceiling_falls():
    apply(CLASS)
    apply(a_job(run="high"))
    submit.Dependent.objects.all().delete()
    bounded(10, attributes={"outside-jobs": "Wait"})
    changed = a_job(run="high")
    changed["metadata"]["labels"] = {"team": "x"}
    Job.objects.update(leaf="root/a")
    assert apply(changed)[0].action == "configured"
