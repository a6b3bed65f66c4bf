"""Everything served can be watched: a job's whole life as the watches of each kind tell it, with the official client."""

import threading
from collections import defaultdict
from contextlib import suppress

import pytest
from kubernetes import client, config
from kubernetes.watch import Watch
from urllib3.exceptions import HTTPError

from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
WATCHED = {
    "jobs": ("kubeflow.org", "v1", "pytorchjobs"),
    "policies": ("policy.karmada.io", "v1alpha1", "propagationpolicies"),
    "bindings": ("work.karmada.io", "v1alpha2", "resourcebindings"),
    "works": ("work.karmada.io", "v1alpha1", "works"),
    "clusters": ("cluster.karmada.io", "v1alpha1", "clusters"),
}
Told = dict[str, list[tuple[str, str]]]


@pytest.fixture
def api(world, admin, tmp_path):
    world.member("north", 8)
    with served(tmp_path) as kubectl:
        made = config.new_client_from_config(str(kubectl.as_user("ada").file))
        yield made
        made.rest_client.pool_manager.clear()


@pytest.fixture
def told(api) -> Told:
    core, custom, found = client.CoreV1Api(api), client.CustomObjectsApi(api), defaultdict(list)

    def listen(name: str, call, *args: str, **asked: str) -> None:
        with suppress(HTTPError):  # as the server ends with the test
            for each in Watch().stream(call, *args, timeout_seconds=300, **asked):
                found[name].append((each["type"], each["raw_object"]["metadata"]["name"]))

    def start(name: str, *args, **asked: str) -> None:
        threading.Thread(target=listen, args=(name, *args), kwargs=asked, daemon=True).start()

    for name, kind in WATCHED.items():
        start(name, custom.list_cluster_custom_object, *kind)
    group, version, plural = WATCHED["bindings"]
    start("bindings of others", custom.list_namespaced_custom_object, group, version, "other", plural)
    start("events", core.list_event_for_all_namespaces, field_selector="involvedObject.kind=PyTorchJob")
    start("namespaces", core.list_namespace)
    return found


def test_it_tells_the_whole_life_of_a_job(world, api, told):
    world.until(lambda: ("ADDED", "north") in told["clusters"], "the cluster is told")
    world.apply(POLICY, pytorch_job("llama", duration="1h"))
    world.expect("llama", "Running")
    binding, work = "llama-pytorchjob", "llama-pytorchjob-1-north"
    for name, event in (
        ("jobs", ("ADDED", "llama")),
        ("policies", ("ADDED", "example-policy")),
        ("bindings", ("ADDED", binding)),
        ("works", ("ADDED", work)),
        ("works", ("MODIFIED", work)),
    ):
        world.until(lambda name=name, event=event: event in told[name], f"{event} of {name} in {told[name]}")
    world.until(lambda: len(told["events"]) >= 3, "its timeline grows")
    world.delete("llama")
    for name, event in (("jobs", "llama"), ("bindings", binding), ("works", work)):
        wanted = ("DELETED", event)
        world.until(lambda name=name, wanted=wanted: wanted in told[name], f"{wanted} of {name} in {told[name]}")
    assert not told["bindings of others"]


def test_it_tells_of_namespaces_as_they_come_to_be_used_and_empty_again(world, api, told):
    other = pytorch_job("llama").replace("name: ", "namespace: other\n  name: ", 1)
    world.until(lambda: ("ADDED", "default") in told["namespaces"], "the first one is told")
    world.apply(other)
    world.until(lambda: ("ADDED", "other") in told["namespaces"], "the new one is told")
    client.CustomObjectsApi(api).delete_namespaced_custom_object("kubeflow.org", "v1", "other", "pytorchjobs", "llama")
    world.until(lambda: ("DELETED", "other") in told["namespaces"], "the end is told")
