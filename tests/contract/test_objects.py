"""Objects as they are made, read, changed and refused: identity, versions, patches, status, lists."""

import pytest
from kubernetes.client import BatchV1Api, CoreV1Api, CustomObjectsApi

from fleet.kube.resources import CONFIG_MAPS, CRDS, EVENTS, JOBS, NAMESPACES, PODS
from fleet.member.errors import MemberChanged, MemberExists, MemberMissing, MemberRefused
from tests.contract.target import Target, config_map, definition, gone, job, pod, served, until


def test_it_gives_a_new_object_its_identity(target: Target, namespace: str) -> None:
    made = target.member.create(CONFIG_MAPS.path(namespace), config_map("a", {"k": "v"}))
    metadata = made["metadata"]
    assert metadata["uid"] and metadata["resourceVersion"].isdigit() and metadata["creationTimestamp"].endswith("Z")
    read = CoreV1Api(target.api).read_namespaced_config_map("a", namespace)
    assert (read.data, read.metadata.uid) == ({"k": "v"}, metadata["uid"])


def test_it_refuses_a_name_that_is_taken(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    with pytest.raises(MemberExists) as refusal:
        target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    assert refusal.value.message == 'configmaps "a" already exists'


def test_it_makes_names_up(target: Target, namespace: str) -> None:
    body = config_map("", generateName="run-")
    del body["metadata"]["name"]
    names = {target.member.create(CONFIG_MAPS.path(namespace), body)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3 and all(name.startswith("run-") and len(name) == 9 for name in names)


@pytest.mark.parametrize("name", ["A", "a/b", "-a", "a" * 254, ""])
def test_it_refuses_names_that_are_none(target: Target, namespace: str, name: str) -> None:
    with pytest.raises(MemberRefused) as refusal:
        target.member.create(CONFIG_MAPS.path(namespace), config_map(name))
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"a": "b c"}, {"a/b/c": "d"}, {"a": "x" * 64}])
def test_it_refuses_labels_that_are_none(target: Target, namespace: str, labels: dict) -> None:
    with pytest.raises(MemberRefused) as refusal:
        target.member.create(CONFIG_MAPS.path(namespace), config_map("a", labels=labels))
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")


def test_it_refuses_an_update_made_from_an_old_version(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    old = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    new = target.member.replace(path, {**old, "data": {"k": "1"}})
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    with pytest.raises(MemberChanged) as refusal:
        target.member.replace(path, {**old, "data": {"k": "2"}})
    assert "the object has been modified" in refusal.value.message
    assert target.member.get(path)["data"] == {"k": "1"}


def test_it_replaces_whatever_is_there_when_no_version_is_named(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a", {"k": "1"}, labels={"l": "1"}))
    made = target.member.replace(CONFIG_MAPS.path(namespace, "a"), config_map("a", {"j": "2"}))
    assert made["data"] == {"j": "2"} and "labels" not in made["metadata"]


def test_it_leaves_the_version_when_nothing_changes(target: Target, namespace: str) -> None:
    old = target.member.create(CONFIG_MAPS.path(namespace), config_map("a", {"k": "1"}))
    same = target.member.merge_patch(CONFIG_MAPS.path(namespace, "a"), {"data": {"k": "1"}})
    assert same["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]


def test_it_merges_patches(target: Target, namespace: str) -> None:
    made = config_map("a", {"k": "1", "gone": "x"}, labels={"l": "1"})
    target.member.create(CONFIG_MAPS.path(namespace), made)
    patch = {"data": {"k": "2", "gone": None, "new": "3"}, "metadata": {"annotations": {"n": "m"}}}
    patched = target.member.merge_patch(CONFIG_MAPS.path(namespace, "a"), patch)
    assert patched["data"] == {"k": "2", "new": "3"}
    assert (patched["metadata"]["labels"], patched["metadata"]["annotations"]) == ({"l": "1"}, {"n": "m"})


def test_it_refuses_a_patch_of_an_old_version(target: Target, namespace: str) -> None:
    old = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    path = CONFIG_MAPS.path(namespace, "a")
    target.member.merge_patch(path, {"data": {"k": "1"}})
    with pytest.raises(MemberChanged):
        patch = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"k": "2"}}
        target.member.merge_patch(path, patch)


def test_it_takes_a_strategic_patch_of_a_built_in_kind(target: Target, namespace: str) -> None:
    """The official client sends this type for built-in kinds."""
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a", {"k": "1"}))
    patched = CoreV1Api(target.api).patch_namespaced_config_map("a", namespace, {"data": {"j": "2"}})
    assert patched.data == {"k": "1", "j": "2"}


def test_it_refuses_a_change_of_what_an_object_is(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    with pytest.raises(MemberRefused) as refusal:
        target.member.replace(CONFIG_MAPS.path(namespace, "a"), config_map("b"))
    assert refusal.value.status == 400
    with pytest.raises(MemberChanged) as changed:
        target.member.replace(CONFIG_MAPS.path(namespace, "a"), config_map("a", uid="another"))
    assert "UID" in changed.value.message


def test_it_refuses_a_manifest_of_another_kind_or_place(target: Target, namespace: str) -> None:
    for body in (pod("a"), config_map("a", namespace="elsewhere")):
        with pytest.raises(MemberRefused) as refusal:
            target.member.create(CONFIG_MAPS.path(namespace), body)
        assert (refusal.value.status, refusal.value.reason) == (400, "BadRequest")


@pytest.mark.usefixtures("definitions")
def test_it_keeps_a_spec_and_its_status_apart(target: Target, namespace: str) -> None:
    resource, manifest = definition()
    target.member.create(CRDS.path(), manifest)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}, "spec": {"n": 1}}
    custom = CustomObjectsApi(target.api)
    where = (resource.group, resource.version, namespace, resource.plural)
    until(lambda: served(target, resource))
    made = custom.create_namespaced_custom_object(*where, {**body, "status": {"made": "up"}})
    assert made["metadata"]["generation"] == 1 and "status" not in made
    path = resource.path(namespace, "a")
    told = target.member.merge_patch(f"{path}/status", {"spec": {"n": 9}, "status": {"phase": "Fine"}})
    assert (told["spec"], told["status"], told["metadata"]["generation"]) == ({"n": 1}, {"phase": "Fine"}, 1)
    changed = target.member.merge_patch(path, {"spec": {"n": 2}, "status": {"phase": "Bad"}})
    assert (changed["spec"], changed["status"], changed["metadata"]["generation"]) == ({"n": 2}, {"phase": "Fine"}, 2)
    labelled = target.member.merge_patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 2


@pytest.mark.usefixtures("defaults")
def test_it_gives_a_batch_job_what_its_pods_need(target: Target, namespace: str) -> None:
    made = target.member.create(JOBS.path(namespace), job("train"))
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"]["matchLabels"] == {"controller-uid": uid}
    assert made["spec"]["template"]["metadata"]["labels"] == {"controller-uid": uid, "job-name": "train"}
    assert [made["spec"][key] for key in ("parallelism", "completions", "backoffLimit")] == [1, 1, 6]
    read = BatchV1Api(target.api).read_namespaced_job("train", namespace)
    assert read.spec.template.spec.containers[0].name == "main"


@pytest.mark.usefixtures("pods")
def test_it_gives_a_pod_its_defaults(target: Target, namespace: str) -> None:
    made = target.member.create(PODS.path(namespace), pod("p"))
    spec = made["spec"]
    assert (made["status"]["phase"], made["status"]["qosClass"]) == ("Pending", "BestEffort")
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert (spec["schedulerName"], spec["dnsPolicy"]) == ("default-scheduler", "ClusterFirst")


@pytest.mark.usefixtures("pods")
def test_it_refuses_a_pod_of_nothing(target: Target, namespace: str) -> None:
    with pytest.raises(MemberRefused) as refusal:
        target.member.create(PODS.path(namespace), {**pod("p"), "spec": {}})
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")


def test_it_refuses_a_job_that_cannot_run(target: Target, namespace: str) -> None:
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": -1}}
    with pytest.raises(MemberRefused) as refusal:
        target.member.create(JOBS.path(namespace), body)
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")


@pytest.mark.usefixtures("written_events")
def test_it_keeps_events(target: Target, namespace: str) -> None:
    involved = {"kind": "Pod", "namespace": namespace, "name": "p"}
    event = {"metadata": {"name": "p.1"}, "involvedObject": involved, "reason": "Started", "message": "m"}
    target.member.create(EVENTS.path(namespace), {"apiVersion": "v1", "kind": "Event", **event})
    query = {"fieldSelector": "involvedObject.name=p,reason=Started"}
    assert [e["message"] for e in target.member.list(EVENTS.path(namespace), query)["items"]] == ["m"]
    assert not target.member.list(EVENTS.path(namespace), {"fieldSelector": "involvedObject.name=q"})["items"]


@pytest.mark.usefixtures("namespaces")
def test_it_creates_nothing_in_a_namespace_that_is_not_there(target: Target) -> None:
    with pytest.raises(MemberMissing) as refusal:
        target.member.create(CONFIG_MAPS.path("nowhere"), config_map("a"))
    assert refusal.value.message == 'namespaces "nowhere" not found'
    assert not target.member.list(CONFIG_MAPS.path("nowhere"))["items"]


@pytest.mark.usefixtures("namespaces")
def test_it_empties_a_namespace_that_is_deleted(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    target.member.create(PODS.path(namespace), pod("p"))
    target.member.delete(NAMESPACES.path(name=namespace))
    until(lambda: gone(target, NAMESPACES.path(name=namespace)))
    assert gone(target, CONFIG_MAPS.path(namespace, "a")) and gone(target, PODS.path(namespace, "p"))


def test_a_delete_is_dry_when_its_body_says_so(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    target.member.create(path, config_map("a"))
    assert target.raw("DELETE", f"{path}/a", b'{"dryRun": ["All"]}')[0] == 200
    assert target.raw("DELETE", path, b'{"dryRun": ["All"]}')[0] == 200
    assert target.raw("DELETE", f"{path}/a", b'{"dryRun": ["Some"]}')[0] == 422
    assert target.member.get(f"{path}/a")["metadata"]["name"] == "a"


def test_it_only_tells_what_would_be_when_the_run_is_dry(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    code, made = target.raw("POST", f"{path}?dryRun=All", b'{"metadata": {"name": "a"}}')
    assert (code, made["metadata"]["name"]) == (201, "a") and gone(target, f"{path}/a")
    target.member.create(path, config_map("a", {"k": "1"}))
    kind = "application/merge-patch+json"
    code, patched = target.raw("PATCH", f"{path}/a?dryRun=All", b'{"data": {"k": "2"}}', Content_Type=kind)
    assert (code, patched["data"]) == (200, {"k": "2"})
    assert target.raw("DELETE", f"{path}/a?dryRun=All")[0] == 200
    assert target.member.get(f"{path}/a")["data"] == {"k": "1"}
