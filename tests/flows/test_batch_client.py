"""Jobs by the calls that operators of workflow engines, as Airflow's, make with the official Python client.

Airflow itself does not run here. Real: the client, Convoy's services and its API server. Simulated: the member.
"""

import pytest
import yaml
from kubernetes import client, config

from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NAMESPACE, NAME = "default", "nightly"


def job() -> client.V1Job:
    metadata = client.V1ObjectMeta(annotations={"convoy.dev/duration": "5s"})
    spec = client.V1PodSpec(
        restart_policy="Never", containers=[client.V1Container(name="base", image="example.com/etl")]
    )
    template = client.V1PodTemplateSpec(metadata=metadata, spec=spec)
    job_spec = client.V1JobSpec(template=template, backoff_limit=0, completions=1, parallelism=1)
    return client.V1Job(api_version="batch/v1", kind="Job", metadata=client.V1ObjectMeta(name=NAME), spec=job_spec)


def test_it_is_made_followed_to_its_end_read_and_deleted(world, admin, tmp_path):
    world.member("north", 1)
    world.apply(POLICY, pytorch_job("other", workers=0, gpus=0, duration="1h"))
    with served(tmp_path) as kubectl, config.new_client_from_config(str(kubectl.as_user("ada").file)) as api:
        batch, core = client.BatchV1Api(api), client.CoreV1Api(api)
        batch.create_namespaced_job(NAMESPACE, job())

        def conditions() -> dict[str, str]:
            status = batch.read_namespaced_job_status(NAME, NAMESPACE).status
            return {each.type: each.status for each in status.conditions or []}

        world.until(lambda: conditions().get("Complete") == "True", "its status says that it is complete")
        [pod] = core.list_namespaced_pod(NAMESPACE, label_selector=f"job-name={NAME}").items
        assert pod.status.phase == "Succeeded"
        assert core.read_namespaced_pod_log(pod.metadata.name, NAMESPACE, container="base")
        logs = kubectl.as_user("ada").says("logs", f"job/{NAME}", "--all-pods")
        assert {line.partition("/base]")[0] for line in logs.splitlines()} == {f"[pod/{pod.metadata.name}"}
        batch.delete_namespaced_job(NAME, NAMESPACE, propagation_policy="Foreground")
        world.until(lambda: not batch.list_namespaced_job(NAMESPACE).items, "it is gone")


def test_a_job_of_another_kind_is_a_custom_object_whose_status_says_how_it_ended(world, admin, tmp_path):
    world.member("north", 1)
    world.apply(POLICY)
    kind = ("kubeflow.org", "v1", NAMESPACE, "pytorchjobs")
    with served(tmp_path) as kubectl, config.new_client_from_config(str(kubectl.as_user("ada").file)) as api:
        custom, core = client.CustomObjectsApi(api), client.CoreV1Api(api)
        body = yaml.safe_load(pytorch_job(NAME, workers=0, gpus=0, duration="5s"))
        assert custom.create_namespaced_custom_object(*kind, body)["metadata"]["name"] == NAME

        def state() -> str:
            return custom.get_namespaced_custom_object_status(*kind, NAME)["status"]["convoy"]["state"]

        world.until(lambda: state() == "Succeeded", "its status says how it ended")
        label = f"training.kubeflow.org/job-name={NAME}"
        [pod] = core.list_namespaced_pod(
            NAMESPACE, label_selector=f"{label},already_checked!=True,!airflow-worker"
        ).items
        assert core.read_namespaced_pod_log(pod.metadata.name, NAMESPACE, container="pytorch", timestamps=True)
        with pytest.raises(client.ApiException) as refused:
            core.delete_namespaced_pod(pod.metadata.name, NAMESPACE)
        assert refused.value.status == 405
        custom.delete_namespaced_custom_object(*kind, NAME)
        world.until(lambda: not custom.list_namespaced_custom_object(*kind)["items"], "it is gone")
