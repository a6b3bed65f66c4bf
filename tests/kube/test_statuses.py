"""Errors as the Status objects that clients of Kubernetes read."""

from fleet.kube.requests.status import KubeError


def test_not_found_always_has_details_which_kubectl_reads_without_a_check() -> None:
    assert KubeError(404, "the server could not find the requested resource").as_status()["details"] == {}


def test_another_error_has_details_only_if_there_are_some() -> None:
    assert "details" not in KubeError(403, "no").as_status()
    assert KubeError(409, "no", details={"name": "llama"}).as_status()["details"] == {"name": "llama"}
