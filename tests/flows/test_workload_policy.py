"""The policy of a namespace holds for the copy that is sent, and is written on the namespaces that Convoy makes."""

import pytest
from django.utils import timezone

from fleet.services.authorization import namespace_policies
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
OVERRIDE = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: mirror}
spec:
  overrideRules:
    - overriders:
        plaintext:
          - path: /spec/pytorchReplicaSpecs/Master/template/spec/hostPID
            operator: add
            value: true
"""
ENFORCE = "pod-security.kubernetes.io/enforce"


def in_vision(text: str) -> str:
    return text.replace("metadata:\n", "metadata:\n  namespace: vision\n", 1).replace(
        "metadata: {name: example-policy}", "metadata: {name: example-policy, namespace: vision}"
    )


def level(world, namespace: str) -> str:
    return world.clients["north"].get(f"/api/v1/namespaces/{namespace}")["metadata"].get("labels", {}).get(ENFORCE, "")


def test_a_policy_that_overrides_a_copy_does_not_get_past_the_namespace(world):
    world.member("north", 4)
    world.apply(POLICY, OVERRIDE, pytorch_job("llama", workers=0))
    refused = "it violates level baseline of namespace default"
    world.until(lambda: any(refused in message for _, message in world.events("llama")), "it is refused")
    assert not world.copies()["north"]


def test_it_labels_the_namespaces_it_makes_and_follows_the_policy(world):
    world.member("north", 4)
    world.clients["north"].create("/api/v1/namespaces", {"metadata": {"name": "speech"}})
    world.apply(in_vision(POLICY), in_vision(pytorch_job("llama", workers=0, duration="10h")))
    world.expect("llama", "Running")
    assert level(world, "vision") == "baseline"
    namespace_policies.save("vision", {"host_network": True}, now=timezone.now())
    world.apply(in_vision(pytorch_job("gpt", workers=0, duration="10h")))
    world.expect("gpt", "Running")
    assert level(world, "vision") == "privileged" and level(world, "speech") == ""
