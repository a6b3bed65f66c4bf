"""The official Python client as it is: typed, dynamic and custom calls, and its informer, on a fleet."""

import threading
import time

import pytest
import yaml
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

from jobs.models import Job
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
WHERE = ("kubeflow.org", "v1", "default", "pytorchjobs")


@pytest.fixture
def api(transactional_db, admin, tmp_path):
    with served(tmp_path) as kubectl:
        made = config.new_client_from_config(str(kubectl.as_user("ada").file))
        yield made
        made.rest_client.pool_manager.clear()


def until(holds) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_makes_changes_and_deletes_typed_objects(api):
    core = client.CoreV1Api(api)
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings", labels={"a": "b"}), data={"k": "1"})
    made = core.create_namespaced_config_map("default", body)
    assert made.metadata.uid and made.metadata.managed_fields[0].operation == "Update"
    assert core.patch_namespaced_config_map("settings", "default", {"data": {"j": "2"}}).data == {"k": "1", "j": "2"}
    made = core.read_namespaced_config_map("settings", "default")
    made.data = {"k": "3"}
    assert core.replace_namespaced_config_map("settings", "default", made).data == {"k": "3"}
    assert [each.metadata.name for each in core.list_config_map_for_all_namespaces().items] == ["settings"]
    assert [each.metadata.name for each in core.list_namespace().items] == ["default"]
    core.delete_collection_namespaced_config_map("default", label_selector="a=b")
    with pytest.raises(ApiException) as refusal:
        core.read_namespaced_config_map("settings", "default")
    assert refusal.value.status == 404


def test_it_runs_batch_jobs(api):
    batch = client.BatchV1Api(api)
    container = client.V1Container(name="main", image="example.com/train")
    pod = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container], restart_policy="Never"))
    body = client.V1Job(metadata=client.V1ObjectMeta(generate_name="train-"), spec=client.V1JobSpec(template=pod))
    made = batch.create_namespaced_job("default", body)
    assert made.metadata.name.startswith("train-")
    batch.patch_namespaced_job(made.metadata.name, "default", {"spec": {"suspend": True}})
    assert batch.read_namespaced_job(made.metadata.name, "default").spec.suspend
    assert Job.objects.get().suspended


def test_it_takes_custom_objects(api):
    custom, body = client.CustomObjectsApi(api), yaml.safe_load(pytorch_job("llama"))
    custom.create_namespaced_custom_object(*WHERE, body)
    assert custom.get_namespaced_custom_object_status(*WHERE, "llama")["status"]["conditions"]
    scale = {"spec": {"replicas": 5}}
    custom.patch_namespaced_custom_object_scale(*WHERE, "llama", scale)
    assert custom.get_namespaced_custom_object_scale(*WHERE, "llama")["spec"] == {"replicas": 5}
    custom.patch_namespaced_custom_object(*WHERE, "llama", {"metadata": {"labels": {"a": "b"}}})
    assert (
        len(custom.list_cluster_custom_object("kubeflow.org", "v1", "pytorchjobs", label_selector="a=b")["items"]) == 1
    )
    custom.delete_namespaced_custom_object(*WHERE, "llama")
    assert not Job.objects.exists()


def test_it_is_found_by_the_dynamic_client(api):
    jobs = DynamicClient(api).resources.get(api_version="kubeflow.org/v1", kind="PyTorchJob")
    jobs.create(body=yaml.safe_load(pytorch_job("llama")), namespace="default")
    applied = jobs.server_side_apply(
        body={
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "llama", "labels": {"x": "y"}},
        },
        namespace="default",
        field_manager="script",
    )
    assert applied.metadata.labels.x == "y"
    assert jobs.get(name="llama", namespace="default").spec.pytorchReplicaSpecs.Worker.replicas == 2
    assert [each.metadata.name for each in jobs.get(label_selector="x=y").items] == ["llama"]
    jobs.delete(name="llama", namespace="default")


def test_it_feeds_the_informer(api):
    core, told = client.CoreV1Api(api), []
    informer = SharedInformer(core.list_namespaced_config_map, namespace="default")
    for kind in (ADDED, MODIFIED, DELETED):
        informer.add_event_handler(kind, lambda found, kind=kind: told.append((kind, found.metadata.name)))
    informer.start()
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"k": "1"})
    for act, event in (
        (lambda: core.create_namespaced_config_map("default", body), ADDED),
        (lambda: core.patch_namespaced_config_map("settings", "default", {"data": {"k": "2"}}), MODIFIED),
        (lambda: core.delete_namespaced_config_map("settings", "default"), DELETED),
    ):
        act()
        until(lambda event=event: (event, "settings") in told)
    assert not informer.cache.list()
    threading.Thread(target=informer.stop, daemon=True).start()


def test_it_answers_who_one_is_and_what_one_may(api):
    rights, who = client.AuthorizationV1Api(api), client.AuthenticationV1Api(api)
    attributes = client.V1ResourceAttributes(verb="list", group="kubeflow.org", resource="pytorchjobs")
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    assert rights.create_self_subject_access_review(client.V1SelfSubjectAccessReview(spec=spec)).status.allowed
    rules = client.V1SelfSubjectRulesReview(spec=client.V1SelfSubjectRulesReviewSpec(namespace="default"))
    assert rights.create_self_subject_rules_review(rules).status.resource_rules
    assert who.create_self_subject_review(client.V1SelfSubjectReview()).status.user_info.username == "ada"


def test_it_lists_and_follows_the_pods_of_a_job(api):
    north, core, seen = Member("north"), client.CoreV1Api(api), []
    pod = a_pod("llama-worker-0", **{"training.kubeflow.org/job-name": "llama"})
    north.node("n1")
    north.pods(pod, a_pod("other-0"))
    selected = {"label_selector": "training.kubeflow.org/job-name=llama"}
    [shown] = core.list_namespaced_pod("default", **selected).items
    assert (shown.metadata.name, shown.status.phase) == ("llama-worker-0.north", "Running")
    assert shown.status.container_statuses[0].state.running.started_at and shown.spec.containers[0].image == "train:1"
    assert core.read_namespaced_pod_status(shown.metadata.name, "default").status.conditions[-1].status == "True"
    assert [node.metadata.name for node in core.list_node().items] == ["n1.north"]
    stream = watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=120, **selected)
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break
        north.lose_pod("llama-worker-0")
    assert seen == [("ADDED", "llama-worker-0.north"), ("DELETED", "llama-worker-0.north")]
