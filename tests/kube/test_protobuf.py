"""Protobuf bodies: whatever comes, it is read, or refused by a Status; never a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.requests import protobuf
from fleet.kube.requests.status import KubeError
from tests.support.protobuf import enveloped, field


def test_it_reads_a_config_map():
    message = field(1, field(1, b"settings")) + field(2, field(1, b"depth") + field(2, b"12"))
    expected = {"metadata": {"name": "settings"}, "data": {"depth": "12"}}
    assert protobuf.document(enveloped("v1", "ConfigMap", message)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        **expected,
    }


@pytest.mark.parametrize(("kind", "message"), [("Pod", b""), ("ConfigMap", field(9, b"more"))])
def test_it_refuses_what_it_would_drop(kind, message):
    with pytest.raises(KubeError) as refusal:
        protobuf.document(enveloped("v1", kind, message))
    assert refusal.value.code == 415


def test_it_refuses_a_part_that_stands_twice_since_a_server_would_merge_both():
    template = field(3, field(2, field(10, b"gpu-0"))) + field(3, field(2, field(3, b"Never")))
    with pytest.raises(KubeError, match="is duplicated"):
        protobuf.document(enveloped("apps/v1", "Deployment", field(2, template)))


def test_it_reads_what_kubectl_creates_of_a_deployment_and_a_cron_job():
    pods = field(1, b"") + field(2, field(2, field(1, b"web") + field(2, b"example.com/web") + field(8, b"")))
    spec = {"containers": [{"name": "web", "image": "example.com/web"}]}
    deployment = protobuf.document(
        enveloped("apps/v1", "Deployment", field(2, field(3, pods) + field(4, b"")) + field(3, b""))
    )
    assert deployment["spec"] == {"template": {"spec": spec}}
    job = field(5, field(2, field(6, pods)))
    cron = protobuf.document(enveloped("batch/v1", "CronJob", field(2, field(1, b"@daily") + job)))
    assert cron["spec"] == {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": spec}}}}


@given(st.binary(max_size=60), st.sampled_from(["ConfigMap", "Secret", "SelfSubjectAccessReview"]))
def test_it_never_crashes(noise, kind):
    group = "v1" if kind != "SelfSubjectAccessReview" else "authorization.k8s.io/v1"
    for raw in (protobuf.MAGIC + noise, enveloped(group, kind, noise)):
        try:
            assert isinstance(protobuf.document(raw), dict)
        except KubeError as e:
            assert e.code in (400, 415)
