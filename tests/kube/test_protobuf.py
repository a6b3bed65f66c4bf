"""Protobuf bodies: whatever comes, it is read, or refused by a Status; never a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube import protobuf
from fleet.kube.status import KubeError


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    head = field(1, api_version.encode()) + field(2, kind.encode())
    return protobuf.MAGIC + field(1, head) + field(2, message)


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


@given(st.binary(max_size=60), st.sampled_from(["ConfigMap", "Secret", "SelfSubjectAccessReview"]))
def test_it_never_crashes(noise, kind):
    group = "v1" if kind != "SelfSubjectAccessReview" else "authorization.k8s.io/v1"
    for raw in (protobuf.MAGIC + noise, enveloped(group, kind, noise)):
        try:
            assert isinstance(protobuf.document(raw), dict)
        except KubeError as e:
            assert e.code in (400, 415)
