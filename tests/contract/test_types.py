"""What has the wrong type, or may not change any more: refused alike by both servers."""

import json

import pytest

from fleet.kube.resources import CONFIG_MAPS, CRDS, PODS
from fleet.member.errors import MemberRefused
from tests.contract.target import Target, config_map, definition, owner, pod


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    "body",
    [
        pod("a", labels={"n": 1}),
        pod("a", annotations="x"),
        pod("a", finalizers="x"),
        pod("a", ownerReferences=["x"]),
        {**pod("a"), "spec": "x"},
        {**pod("a"), "spec": {"containers": "x"}},
        {**pod("a"), "spec": {"containers": [{"name": 5, "image": "i"}]}},
        {**pod("a"), "spec": {"containers": [{"name": "m", "image": "i", "resources": {"limits": {"cpu": "x"}}}]}},
    ],
    ids=["label", "annotations", "finalizers", "owner", "spec", "containers", "name", "quantity"],
)
def test_it_refuses_the_wrong_type(target: Target, namespace: str, body: dict) -> None:
    code, answer = target.raw("POST", PODS.path(namespace), json.dumps(body).encode())
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert target.member.list(PODS.path(namespace))["items"] == []


def test_it_takes_null_for_nothing(target: Target, namespace: str) -> None:
    nothing = {"labels": None, "annotations": None, "finalizers": None, "ownerReferences": None}
    made = target.member.create(CONFIG_MAPS.path(namespace), {**config_map("a", **nothing), "data": None})
    assert not made.get("data") and not made["metadata"].get("finalizers")


@pytest.mark.usefixtures("owners")
def test_it_wants_owners_named_whole(target: Target, namespace: str) -> None:
    reference = owner(target.member.create(CONFIG_MAPS.path(namespace), config_map("a")))
    with pytest.raises(MemberRefused) as refused:
        body = config_map("b", ownerReferences=[{**reference, "uid": ""}])
        target.member.create(CONFIG_MAPS.path(namespace), body)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")


@pytest.mark.usefixtures("pods")
def test_it_lets_a_pod_change_its_image(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    patch = [{"op": "replace", "path": "/spec/containers/0/image", "value": "j"}]
    code, patched = target.raw(
        "PATCH", PODS.path(namespace, "a"), json.dumps(patch).encode(), Content_Type="application/json-patch+json"
    )
    assert (code, patched["spec"]["containers"][0]["image"]) == (200, "j")


@pytest.mark.usefixtures("pods")
def test_it_takes_a_pod_as_it_was_written(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    replaced = target.member.replace(PODS.path(namespace, "a"), pod("a", labels={"app": "web"}))
    assert replaced["metadata"]["labels"] == {"app": "web"}


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    "patch", [{"nodeName": "n"}, {"restartPolicy": "Never"}, {"containers": None}, {"hostname": "h"}]
)
def test_it_lets_a_pod_be_no_other_pod(target: Target, namespace: str, patch: dict) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    with pytest.raises(MemberRefused) as refused:
        target.member.merge_patch(PODS.path(namespace, "a"), {"spec": patch})
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(
    "change",
    [{"versions": []}, {"versions": None}, {"names": None}, {"scope": "Sometimes"}],
    ids=lambda each: next(iter(each)),
)
def test_it_refuses_a_definition_it_could_not_serve(target: Target, change: dict) -> None:
    _, body = definition()
    body["spec"] |= change
    with pytest.raises(MemberRefused) as refused:
        target.member.create(CRDS.path(), body)
    assert refused.value.status in (400, 422)


@pytest.mark.parametrize(
    "options", [{"gracePeriodSeconds": "x"}, {"preconditions": []}, {"propagationPolicy": 5}], ids=str
)
def test_it_refuses_delete_options_of_the_wrong_type(target: Target, namespace: str, options: dict) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    code, _ = target.raw("DELETE", CONFIG_MAPS.path(namespace, "a"), json.dumps(options).encode())
    assert code in (400, 500)
    assert target.member.get(CONFIG_MAPS.path(namespace, "a"))


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_it_writes_no_log(target: Target, namespace: str, method: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    path = PODS.path(namespace, "a", "log")
    assert target.raw(method, path, b"{}", Content_Type="application/merge-patch+json")[0] == 405
