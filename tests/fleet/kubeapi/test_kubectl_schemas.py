"""What the kinds of training are made of, over a stock kubectl: explained, defaulted, pruned, and told where it is unknown."""

import json
from pathlib import Path

import pytest

from jobs.models import Job, Policy
from quotas.models import QuotaTree
from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

EXPLAINED = {
    "mpijob.spec --api-version=kubeflow.org/v1": "mainContainer",
    "mpijob.spec --api-version=kubeflow.org/v2beta1": "sshAuthMountPath",
    "trainingjob.spec.etReplicaSpecs": "minReplicas",
    "elasticjob.spec.replicaSpecs.template.spec": "nodeSelector",
    "rayjob.spec.rayClusterSpec.workerGroupSpecs": "numOfHosts",
    "jobset.spec.replicatedJobs.template.spec": "completions",
    "sparkapplication.spec.executor": "instances",
    "job.spec.tasks --api-version=batch.volcano.sh/v1alpha1": "minAvailable",
    "overridepolicy.spec.overrideRules.overriders.imageOverrider": "component",
    "elasticquotatree.spec.root.children": "namespaces",
    "tfjob.spec.runPolicy.schedulingPolicy": "minResources",
}


@pytest.fixture
def ada(transactional_db, tmp_path, admin):
    with served(tmp_path) as made:
        yield made.as_user("ada")


def test_it_explains_every_kind(ada):
    for words, told in EXPLAINED.items():
        assert told in ada.says("explain", *words.split()), words


def test_it_drops_what_nobody_knows_and_says_so(ada):
    odd = pytorch_job("llama").replace("spec:\n", "spec:\n  colour: red\n", 1)
    assert 'unknown field "spec.colour"' in ada.refused("create", "-f", "-", given=odd)
    assert 'unknown field "spec.colour"' in ada.says("create", "--validate=warn", "-f", "-", given=odd)
    assert "colour" not in Job.objects.get().manifest["spec"]
    assert "unknown" not in ada.says("apply", "--validate=ignore", "-f", "-", given=odd.replace("colour", "shape"))
    assert "shape" not in Job.objects.get().manifest["spec"]


OVERRIDE = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror}
spec:
  overrideRules:
    - overriders: {imageOverrider: [{component: Registry, operator: replace, value: mirror.example.com}]}
"""


@pytest.mark.parametrize("text", [POLICY, OVERRIDE], ids=["propagation", "override"])
def test_it_drops_what_nobody_knows_of_policies(ada, text):
    odd = text.replace("spec:\n", "spec:\n  colour: red\n", 1)
    assert 'unknown field "spec.colour"' in ada.refused("create", "-f", "-", given=odd)
    assert not Policy.objects.exists()
    assert 'unknown field "spec.colour"' in ada.says("create", "--validate=warn", "-f", "-", given=odd)
    assert "unknown" not in ada.says("apply", "--validate=ignore", "-f", "-", given=odd.replace("colour", "shape"))
    assert Policy.objects.get().manifest["spec"].keys().isdisjoint({"colour", "shape"})


TREE = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec:
  root: {name: root, min: {cpu: 8}, max: {cpu: 8}, children: [{name: vision, min: {cpu: 1}, max: {cpu: 4}}]}
"""


def test_it_drops_what_nobody_knows_of_the_quota_tree(ada):
    odd = TREE.replace("spec:\n", "spec:\n  colour: red\n", 1)
    assert 'unknown field "spec.colour"' in ada.refused("create", "-f", "-", given=odd)
    assert 'unknown field "spec.colour"' in ada.says("create", "--validate=warn", "-f", "-", given=odd)
    assert "colour" not in QuotaTree.objects.get().manifest["spec"]


def test_it_never_drops_what_may_be_meant_as_a_limit(ada):
    odd = TREE.replace("max: {cpu: 4}", "maxx: {cpu: 4}")
    assert 'unknown field "spec.root.children[0].maxx"' in ada.refused("create", "-f", "-", given=odd)
    assert "is no field of a quota" in ada.refused("create", "--validate=ignore", "-f", "-", given=odd)
    assert not QuotaTree.objects.exists()


def test_it_keeps_what_is_new_in_pods(ada):
    odd = pytorch_job("llama").replace("containers:", "nextYear: 1\n          containers:", 1)
    ada.says("create", "--validate=ignore", "-f", "-", given=odd)
    assert "nextYear" in json.dumps(Job.objects.get().manifest)


def test_it_shows_the_defaults_of_the_definition(ada):
    ada.says("apply", "-f", "docs/examples/rayjob.yaml")
    job = Job.objects.get()
    shown = json.loads(ada.says("get", "rayjob", job.name, "-ojson"))
    assert shown["spec"]["submissionMode"] == "K8sJobMode"
    assert shown["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["numOfHosts"] == 1


def test_it_does_not_store_the_defaults_it_shows(ada):
    ada.says("apply", "-f", "docs/examples/rayjob.yaml")
    before = Job.objects.get()
    ada.says("apply", "-f", "docs/examples/rayjob.yaml")
    ada.says("label", "rayjob", before.name, "team=vision")
    after = Job.objects.get()
    assert after.manifest["spec"] == before.manifest["spec"]


@pytest.mark.parametrize("file", sorted(Path("docs/examples").glob("*.yaml")), ids=lambda each: each.stem)
def test_it_takes_every_example_strictly(ada, file):
    ada.says("apply", "-f", "docs/examples/trainingruntime.yaml")
    assert "Warning: unknown" not in ada.says("apply", "--validate=strict", "-f", str(file))
