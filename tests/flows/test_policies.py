"""What policies say about copies: overrides by cluster, and whose object it is that stands there already."""

import pytest

from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
COPY = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/llama"
OVERRIDE = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: mirror}
spec:
  overrideRules:
    - targetCluster: {clusterNames: [north]}
      overriders:
        imageOverrider: [{component: Registry, operator: replace, value: mirror.north}]
        labelsOverrider: [{operator: add, value: {site: north}}]
"""
MORE_GPUS = OVERRIDE.replace("mirror}", "more}").replace("clusterNames: [north]", "").split("        imageOverrider")[
    0
] + ("        plaintext: [{path: /spec/pytorchReplicaSpecs/Worker/replicas, operator: replace, value: 9}]\n")
ONLY_NORTH = POLICY.replace("placement: {", "placement: {clusterAffinity: {clusterNames: [north]}, ")


def copy_in(world, member: str) -> dict:
    return world.clients[member].get(COPY)


def image_of(copy: dict) -> str:
    return copy["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["image"]


def foreign(world, member: str) -> None:
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "llama", "namespace": "default", "labels": {"made-by": "hand"}},
        "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {}},
    }
    world.clients[member].create(COPY.rpartition("/")[0], body)


def test_it_writes_a_copy_as_the_override_of_its_cluster_says(world):
    world.member("north", 4)
    world.apply(ONLY_NORTH, OVERRIDE, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running", on="north")
    copy = copy_in(world, "north")
    assert image_of(copy) == "mirror.north/train"
    assert copy["metadata"]["labels"]["site"] == "north"
    assert image_of(world.job("llama").manifest) == "example.com/train"
    # Its pods may run before the worker has written down that it sent it.
    told = ("ApplyOverridePolicySucceed", "Applied to the copy for north: ClusterOverridePolicy mirror")
    world.until(lambda: told in world.events("llama"), "the override is in its timeline")


def test_it_leaves_copies_elsewhere_as_they_are(world):
    world.member("south", 4)
    world.apply(POLICY, OVERRIDE, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running", on="south")
    assert image_of(copy_in(world, "south")) == "example.com/train"


def test_it_sends_nothing_whose_gang_an_override_would_change(world):
    world.member("north", 4)
    world.apply(POLICY, MORE_GPUS, pytorch_job("llama", duration="10h"))
    told = "would change the replicas or requests of role worker"
    world.until(lambda: any(told in message for _, message in world.events("llama")), "it is told")
    assert world.copies() == {"north": []}


def test_it_aborts_where_somebody_elses_job_has_the_name(world):
    world.member("north", 4)
    foreign(world, "north")
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.until(lambda: any("refused the job: AlreadyExists" in m for _, m in world.events("llama")), "it is told")
    assert copy_in(world, "north")["metadata"]["labels"]["made-by"] == "hand"


def test_it_overwrites_it_where_the_policy_says_so(world):
    world.member("north", 4)
    foreign(world, "north")
    world.apply(
        POLICY.replace("spec:\n", "spec:\n  conflictResolution: Overwrite\n", 1), pytorch_job("llama", duration="10h")
    )
    world.expect("llama", "Running", on="north")
    assert "made-by" not in copy_in(world, "north")["metadata"]["labels"]


def test_it_asks_the_next_affinity_term_when_the_first_is_full(world):
    world.member("north", 4)
    world.member("south", 4)
    terms = "placement: {clusterAffinities: [{affinityName: own, clusterNames: [north]}, {affinityName: rest}], "
    policy = POLICY.replace("placement: {", terms)
    world.apply(policy, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running", on="north")
    world.apply(pytorch_job("whisper", duration="10h"))
    world.expect("whisper", "Running", on="south")
