"""Requests nobody means well with: each is answered by a Status of 4xx, and nothing is written."""

import json

import pytest
import yaml
from kubernetes import client, config

from jobs.models import Job
from tests.support.kubectl import served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
GOOD = yaml.safe_load(pytorch_job("llama"))
REQUESTS = {
    "a name that is a number": ("POST", JOBS, {**GOOD, "metadata": {"name": 5}}),
    "no name": ("POST", JOBS, {**GOOD, "metadata": {}}),
    "no metadata": ("POST", JOBS, {**GOOD, "metadata": None}),
    "another kind": ("POST", JOBS, {**GOOD, "kind": "Job"}),
    "another namespace": ("POST", JOBS, {**GOOD, "metadata": {"name": "llama", "namespace": "other"}}),
    "a namespace that is a list": ("POST", JOBS, {**GOOD, "metadata": {"name": "llama", "namespace": ["default"]}}),
    "a spec that is a text": ("POST", JOBS, {**GOOD, "spec": "run it"}),
    "half a character": ("POST", JOBS, {**GOOD, "spec": {"word": "\ud800"}}),
    "not an object": ("POST", JOBS, [1]),
    "no number": ("POST", JOBS, {**GOOD, "spec": {"amount": float("nan")}}),
    "a selector with a hole": ("GET", f"{JOBS}?labelSelector=a%20in%20(", None),
    "a field nobody has": ("GET", f"{JOBS}?fieldSelector=spec.colour%3Dred", None),
    "a zero byte": ("GET", f"{JOBS}?fieldSelector=metadata.name%3D%00", None),
    "a limit that is no number": ("GET", f"{JOBS}?limit=many", None),
    "a continue that was never given": ("GET", f"{JOBS}?continue=AAAA", None),
    "a path into nowhere": ("GET", f"{JOBS}/a/b/c/d", None),
    "a verb nobody knows": ("PUT", JOBS, GOOD),
    "a deep nest": ("POST", JOBS, "deep"),
}


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    with served(tmp_path) as kubectl:
        api = config.new_client_from_config(str(kubectl.as_user("ada").file))
        yield api
        api.rest_client.pool_manager.clear()


@pytest.mark.parametrize("told", REQUESTS)
def test_it_answers_each_with_a_status(ada, told):
    method, path, body = REQUESTS[told]
    sent = '{"a":' * 5000 + "1" + "}" * 5000 if body == "deep" else None if body is None else json.dumps(body)
    token = ada.configuration.auth_settings()["BearerToken"]["value"]
    headers = {"Authorization": token, "Content-Type": "application/json"}
    answer = ada.rest_client.pool_manager.request(method, ada.configuration.host + path, body=sent, headers=headers)
    assert 400 <= answer.status < 500 and answer.status != 401, (answer.status, answer.data)
    assert json.loads(answer.data)["kind"] == "Status"
    assert not Job.objects.exists()


def test_it_refuses_to_turn_an_object_into_another(ada):
    custom = client.CustomObjectsApi(ada)
    custom.create_namespaced_custom_object("kubeflow.org", "v1", "default", "pytorchjobs", GOOD)
    for change in ({"metadata": {"name": "other"}}, {"metadata": {"uid": "1"}}, {"kind": "Job"}, {"metadata": None}):
        with pytest.raises(client.ApiException) as refusal:
            custom.patch_namespaced_custom_object("kubeflow.org", "v1", "default", "pytorchjobs", "llama", change)
        assert 400 <= refusal.value.status < 500, change
    assert Job.objects.get().name == "llama"
