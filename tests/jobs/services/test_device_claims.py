"""Jobs whose pods ask for devices by claims (resource.k8s.io/v1): counted, limited, placed and sent like others."""

import re

import pytest
import yaml
from django.utils import timezone

from fleet.core import devices
from fleet.errors import InvalidInput
from fleet.kube.resources import PYTORCH_JOBS, RESOURCE_CLAIM_TEMPLATES
from fleet.models import Cluster
from jobs.core.reasons import Code
from jobs.kinds.base import DEVICES
from jobs.models import Dependent, Job
from jobs.services.submission.changes import actions
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.device_claims import GPUS, job, template
from tests.support.passive import passive_member
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path, "north", serves={"resource.k8s.io": "v1"}) as made:
        made.cluster.nodes.update(allocatable={"cpu": 10**6, "memory": 2**50, "pods": 10**4, GPUS: 8})
        yield made


def apply(*documents):
    return books.apply(*(each if isinstance(each, str) else yaml.safe_dump(each) for each in documents))


def refused(*documents) -> dict[str, str]:
    with pytest.raises(InvalidInput) as e:
        apply(*documents)
    return {re.sub(r"^\[\d+\]\.", "", fault.field): fault.detail for fault in e.value.faults}


def go(north) -> None:
    books.cycle()
    north.work(PYTORCH_JOBS)


def own_template(north, count: int) -> None:
    own = {**template(count=count), "metadata": {"name": "two-gpus", "namespace": "default"}}
    north.client.create(RESOURCE_CLAIM_TEMPLATES.path("default"), own)


def expect_not_sent(north, words: str) -> None:
    llama = books.job("llama")
    assert llama.state != Job.State.DISPATCHED and words in llama.reason["message"]
    assert north.items(PYTORCH_JOBS) == []


def test_its_devices_are_in_its_total_its_size_and_its_charge(north):
    apply(POLICY, template(), job("llama"))
    llama = books.job("llama")
    assert (llama.total[GPUS], llama.gpus, devices.count(llama.total)) == (6, 6, 6)
    go(north)
    llama = books.job("llama")
    assert (llama.state, llama.cluster.name) == (Job.State.DISPATCHED, "north")


def test_it_waits_while_the_nodes_have_too_few_devices_and_says_so(north):
    apply(POLICY, template(count=4), job("llama"))
    go(north)
    waiting = books.job("llama")
    assert waiting.reason_code == Code.NO_CLUSTER_FITS and GPUS in waiting.reason["message"]


def test_devices_that_claims_have_taken_are_not_given_again(north):
    Cluster.objects.get(name="north").nodes.update(requested={GPUS: 4})
    apply(POLICY, template(), job("llama"))
    go(north)
    assert books.job("llama").reason_code == Code.NO_CLUSTER_FITS


def test_a_quota_limits_the_devices_of_a_class_by_its_name(north):
    few = {GPUS: 5, "nvidia.com/gpu": 8}
    apply(manifest(quota("root", few, few, quota("research", {}, few, namespaces=["default"]))))
    apply(POLICY, template(), job("llama"), job("small", workers=1))
    go(north)
    assert (books.job("llama").reason_code, books.job("small").state) == (Code.NEVER_FITS, Job.State.DISPATCHED)


def test_two_jobs_do_not_get_the_same_devices(north):
    apply(POLICY, template(), job("one"), job("two"))
    go(north)
    assert sorted(Job.objects.values_list("state", flat=True)) == [Job.State.DISPATCHED, Job.State.QUEUED]


def test_the_template_is_sent_before_the_copy_whatever_the_policy_says_of_dependents(north):
    policy = yaml.safe_load(POLICY)
    policy["spec"]["propagateDeps"] = False
    apply(policy, template(), job("llama"))
    go(north)
    [sent] = north.items(RESOURCE_CLAIM_TEMPLATES)
    [copy] = north.items(PYTORCH_JOBS)
    assert sent["spec"] == template()["spec"] and DEVICES not in copy
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    north.work(PYTORCH_JOBS)
    assert north.items(RESOURCE_CLAIM_TEMPLATES) == []


def test_a_template_of_the_clusters_own_that_asks_for_more_is_not_used(north):
    own_template(north, 8)
    apply(POLICY, template(), job("llama"))
    go(north)
    expect_not_sent(north, "asks for other devices")


def test_a_template_that_was_made_anew_and_asks_for_more_is_not_sent_with_a_job_that_was_counted_before(north):
    apply(POLICY, template(), job("llama"))
    Dependent.objects.get(name="two-gpus").delete()
    apply(template(count=8))
    go(north)
    expect_not_sent(north, "other devices than those by which the job was counted")
    assert north.items(RESOURCE_CLAIM_TEMPLATES) == []


@pytest.mark.parametrize(("own", "words"), [(8, "asks for other devices"), (None, "neither"), (2, "")])
def test_without_a_template_of_the_fleet_that_of_the_cluster_must_be_what_the_job_was_counted_by(north, own, words):
    apply(POLICY, template(), job("llama"))
    Dependent.objects.get(name="two-gpus").delete()
    if own:
        own_template(north, own)
    go(north)
    if words:
        expect_not_sent(north, words)
    else:
        assert books.job("llama").state == Job.State.DISPATCHED


def test_a_job_whose_claim_the_fleet_does_not_have_is_refused_by_the_field_of_each_role(north):
    assert refused(POLICY, job("llama")) == {
        f"spec.pytorchReplicaSpecs.{role}.template.spec.resourceClaims[0]": (
            "there is no ResourceClaimTemplate two-gpus in this namespace of the fleet: apply it first"
        )
        for role in ("Master", "Worker")
    }
    other = {**template(), "metadata": {"name": "two-gpus", "namespace": "elsewhere"}}
    assert refused(POLICY, other, job("llama"))


def test_a_claim_is_one_pods_own(north):
    claim = template("mine", kind="ResourceClaim")
    shared = job("llama", "mine", field="resourceClaimName")
    assert all("several pods" in detail for detail in refused(POLICY, claim, shared).values())
    apply(POLICY, claim, job("alone", "mine", workers=0, field="resourceClaimName"))
    assert books.job("alone").gpus == 2


def test_a_placed_job_keeps_what_it_was_counted_with_and_a_waiting_one_does_not(north):
    apply(POLICY, template(), job("placed"))
    go(north)
    apply(job("waiting"))
    Dependent.objects.get(name="two-gpus").delete()
    apply(template(count=1))
    for name in ("placed", "waiting"):
        apply({**job(name), "metadata": {"name": name, "labels": {"team": "vision"}}})
    assert (books.job("placed").gpus, books.job("waiting").gpus) == (6, 3)


def test_the_spec_of_a_claim_never_changes(north):
    apply(template())
    assert refused(template(count=4)) == {"spec": "is immutable: delete it and apply it anew, or under another name"}
    apply({**template(), "metadata": {"name": "two-gpus", "labels": {"team": "vision"}}})


def test_nobody_says_by_hand_what_a_claim_asks_for(north):
    apply(POLICY, template(), {**job("llama"), DEVICES: {"ResourceClaimTemplate/two-gpus": {GPUS: 0}}})
    assert books.job("llama").gpus == 6
