"""A gang whose node is lost runs again on the other nodes, although a pod is left there that nothing ends."""

from dataclasses import replace

import pytest
import yaml

from fleet.models import Event
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

BRIEF = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]


def policy(purge: str) -> str:
    failover = f"  failover: {{application: {{decisionConditions: {{tolerationSeconds: 0}}, purgeMode: {purge}}}}}\n  placement"
    return POLICY.replace("  placement", failover, 1)


def job(name: str) -> str:
    body = yaml.safe_load(pytorch_job(name, gpus=4, duration="10h"))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        role["restartPolicy"] = "Never"
        role["template"]["spec"]["tolerations"] = BRIEF
    return yaml.safe_dump(body)


def lose_a_node(world) -> str:
    lost = next(pod["spec"]["nodeName"] for pod in world.pods("north") if "worker-1" in pod["metadata"]["name"])
    world.members["north"]._manager.switch_node(lost, on=False)
    return str(lost)


@pytest.mark.parametrize("purge", ["Directly", "Gracefully"])
def test_it_runs_again_on_the_other_nodes_of_its_cluster(world, settings, purge):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, lost_node_s=1.0)
    world.member("north", 4, 4, 4, 4, time_scale=1.0)
    world.apply(policy(purge), job("llama"))
    world.expect("llama", "Running")
    lost = lose_a_node(world)
    world.until(lambda: world.job("llama").attempt == 2, "it has another attempt")
    world.expect("llama", "Running")
    now = [pod for pod in world.pods("north") if pod["metadata"]["labels"]["convoy.dev/attempt"] == "2"]
    assert len(now) == 3 and lost not in {pod["spec"]["nodeName"] for pod in now}
    event = Event.objects.get(reason="LostPodsRemoved")
    assert f"1 pods of attempt 1 on lost nodes of north are removed without an answer of {lost}" in event.message
