"""A gang whose node is lost runs again on the other nodes, although a pod is left there that nothing ends."""

from dataclasses import replace

import pytest
import yaml

from fleet.models import Event, Node
from simulator.fault_parser import parse
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

BRIEF = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]


def policy(purge: str) -> str:
    failover = f"  failover: {{application: {{decisionConditions: {{tolerationSeconds: 0}}, purgeMode: {purge}}}}}\n  placement"
    return POLICY.replace("  placement", failover, 1)


def job(name: str, tolerations: list) -> str:
    body = yaml.safe_load(pytorch_job(name, gpus=4, duration="10h"))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        role["restartPolicy"] = "Never"
        role["template"]["spec"]["tolerations"] = tolerations
    return yaml.safe_dump(body)


def lose_a_node(world) -> str:
    lost = next(pod["spec"]["nodeName"] for pod in world.pods("north") if "worker-1" in pod["metadata"]["name"])
    world.members["north"].disturb(parse(["node-down", lost]))
    return str(lost)


@pytest.mark.parametrize(
    ("purge", "tolerations", "lost_node_s"),
    [("Directly", BRIEF, 5.0), ("Gracefully", [], 1.0)],
    ids=["its member evicts the pod first", "its member would evict the pod after five minutes"],
)
def test_it_runs_again_on_the_other_nodes_of_its_cluster(world, settings, purge, tolerations, lost_node_s):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, lost_node_s=lost_node_s)
    world.member("north", 4, 4, 4, 4, time_scale=1.0)
    world.apply(policy(purge), job("llama", tolerations))
    world.expect("llama", "Running")
    lost = lose_a_node(world)
    world.until(lambda: world.job("llama").attempt == 2, "it has another attempt")
    world.expect("llama", "Running")
    now = [pod for pod in world.pods("north") if pod["metadata"]["labels"]["convoy.dev/attempt"] == "2"]
    assert len(now) == 3 and lost not in {pod["spec"]["nodeName"] for pod in now}
    events = {event.reason: event.message for event in Event.objects.all()}
    assert (
        f"Removing 1 pods of attempt 1 from lost nodes of north, without an answer of {lost}"
        in events["RemovingLostPods"]
    )
    assert f"node {lost} of north is excluded for this job" in events["NodeExcluded"]
    if not tolerations:
        assert f"node {lost} of north, where it has pods, has not been ready since" in events["Moving"]


def test_a_job_that_was_suspended_on_a_lost_node_runs_on_the_others_when_it_is_resumed(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, lost_node_s=1.0)
    world.member("north", 4, 4, 4, 4, time_scale=1.0)
    world.apply(POLICY, job("llama", []))
    world.expect("llama", "Running")
    lost = lose_a_node(world)
    world.until(lambda: not Node.objects.get(name=lost).ready, "its node does not answer")
    world.suspend("llama")
    world.expect("llama", "Suspended")
    world.until(lambda: [pod["spec"]["nodeName"] for pod in world.pods("north")] == [lost], "one pod is left, there")
    world.resume("llama")
    world.until(lambda: world.job("llama").attempt == 2, "it has another attempt")
    world.expect("llama", "Running")
    now = [pod for pod in world.pods("north") if pod["metadata"]["labels"]["convoy.dev/attempt"] == "2"]
    assert len(now) == 3 and lost not in {pod["spec"]["nodeName"] for pod in now}
    assert lost in Event.objects.get(reason="RemovingLostPods").message
