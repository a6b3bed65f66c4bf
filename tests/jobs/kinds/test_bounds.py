"""Which kinds are resized while they run, between which sizes, and what a resize changes in their manifests."""

import copy

import pytest

from jobs.core.resizing.min_available import STATED
from jobs.core.resizing.stated_bounds import BOUNDS, read
from jobs.kinds.base import Faults
from tests.jobs.kinds.builders import changed, example

NOTE = f"metadata/annotations/{BOUNDS}"
GROUP = "spec/rayClusterSpec/workerGroupSpecs/0"


def sized(name: str, bounds: str = ""):
    kind, manifest = example(name)
    if bounds:
        manifest["metadata"].setdefault("annotations", {})[BOUNDS] = bounds
    return kind, manifest


def replicas(kind, manifest) -> dict[str, int]:
    return {role.name: role.replicas for role in kind.read(manifest).roles}


@pytest.mark.parametrize(
    ("name", "bounds", "role", "least", "most"),
    [
        ("trainingjob", "", "worker", 1, 8),
        ("rayjob", "", "gpus", 1, 4),
        ("volcanojob", "worker=1:5", "worker", 1, 5),
    ],
)
def test_a_role_with_bounds_gets_any_size_between_them_and_nothing_else_changes(name, bounds, role, least, most):
    kind, manifest = sized(name, bounds)
    limits = kind.bounds(manifest)[role]
    assert (limits.least, limits.most) == (least, most) and list(kind.bounds(manifest)) == [role]
    before, others = replicas(kind, manifest), copy.deepcopy(manifest)
    for size in (most, least, before[role]):
        kind.resize(manifest, role, size)
        reading = kind.read(manifest)
        assert not reading.faults and replicas(kind, manifest) == {**before, role: size}
        assert reading.gang == sum(r.replicas for r in reading.roles if r.name not in ("launcher", "submitter"))
    assert kind.read(manifest) == kind.read(others)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("trainingjob", "spec/etReplicaSpecs/worker/minReplicas", None),
        ("trainingjob", "spec/etReplicaSpecs/worker/maxReplicas", None),
        ("rayjob", f"{GROUP}/maxReplicas", None),
        ("rayjob", f"{GROUP}/numOfHosts", 2),
        ("rayjob", "spec/rayClusterSpec/enableInTreeAutoscaling", True),
        ("volcanojob", "metadata/labels", {}),
        ("elasticjob", "metadata/labels", {}),
    ],
)
def test_without_bounds_or_where_another_decides_it_is_not_resized(name, path, value):
    kind, manifest = example(name)
    assert not kind.bounds(changed(manifest, path, value))


def test_a_group_that_may_have_no_pods_keeps_one_while_it_runs():
    kind, manifest = example("rayjob")
    assert kind.bounds(changed(manifest, f"{GROUP}/minReplicas", 0))["gpus"].least == 1


@pytest.mark.parametrize(
    "text",
    ["worker", "worker=2", "worker=0:3", "worker=3:2", "worker=1:x", "worker=1:2,worker=1:3", "", "=1:2,", "worker=-1:2",
     "worker=1:99999999999", "worker=1:٣", "worker=1:3,"],
)  # fmt: skip
def test_bounds_that_are_no_bounds_are_a_fault_of_the_annotation(text):
    kind, manifest = sized("volcanojob", "worker=1:2")
    manifest["metadata"]["annotations"][BOUNDS] = text
    [fault] = kind.read(manifest).faults
    assert BOUNDS in fault.field and not kind.bounds(manifest)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("worker=3:5", "worker must have from 3 to 5 pods, not 2"),
        ("chief=1:2", "no role of the job; its roles are ps, worker"),
    ],
)
def test_bounds_of_other_roles_or_sizes_are_refused_with_the_numbers(text, words):
    kind, manifest = sized("volcanojob", text)
    [fault] = kind.read(manifest).faults
    assert words in fault.detail


@pytest.mark.parametrize("notes", [None, 7, [], {BOUNDS: 7}, {BOUNDS: None}, {BOUNDS: {"worker": 1}}])
def test_whatever_stands_in_the_annotations_is_read(notes):
    read({"metadata": {"annotations": notes}}, Faults())


def test_of_a_volcano_job_that_starts_with_less_than_all_what_is_available_at_once_stays():
    kind, manifest = sized("volcanojob", "worker=1:5")
    manifest["spec"]["minAvailable"] = 2
    kind.resize(manifest, "worker", 5)
    assert manifest["spec"]["minAvailable"] == 2
    kind.resize(manifest, "worker", 1)
    assert manifest["spec"]["minAvailable"] == 2 and not kind.read(manifest).faults


@pytest.mark.parametrize("of_job", [None, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("of_task", [None, 1, 2, 3, 5])
def test_a_volcano_job_that_is_back_at_its_size_has_the_manifest_that_was_submitted(of_job, of_task):
    kind, manifest = sized("volcanojob", "worker=1:8")
    kind.resize(manifest, "worker", 5)
    worker = next(task for task in manifest["spec"]["tasks"] if task["name"] == "worker")
    for target, least in ((manifest["spec"], of_job), (worker, of_task)):
        target.pop("minAvailable", None)
        if least is not None:
            target["minAvailable"] = least
    submitted, pods = copy.deepcopy(manifest), 6
    for size in (3, 1, 2, 8, 1, 8, 5):
        kind.resize(manifest, "worker", size)
        at_once = copy.deepcopy(submitted)
        kind.resize(at_once, "worker", size)
        assert manifest == at_once and not kind.read(manifest).faults
        if of_job is not None:
            wanted = size + 1 if of_job == pods else min(of_job, size + 1)
            assert manifest["spec"]["minAvailable"] == wanted
    assert manifest == submitted


def test_a_volcano_job_that_began_at_its_fewest_pods_grows_with_the_min_of_its_task_as_it_was():
    kind, manifest = sized("volcanojob", "worker=2:8")
    kind.resize(manifest, "worker", 2)
    kind.set_defaults(manifest)
    kind.resize(manifest, "worker", 8)
    assert [task.get("minAvailable") for task in manifest["spec"]["tasks"]] == [None, 2]


def test_a_min_that_a_person_changed_meanwhile_is_not_the_one_that_is_remembered():
    kind, manifest = sized("volcanojob", "worker=1:8")
    kind.resize(manifest, "worker", 7)
    manifest["spec"]["minAvailable"] = 4
    kind.resize(manifest, "worker", 2)
    assert manifest["metadata"]["annotations"][STATED] == "spec=4"
    manifest["spec"]["minAvailable"] = 2
    kind.resize(manifest, "worker", 7)
    assert manifest["spec"]["minAvailable"] == 2 and STATED not in manifest["metadata"]["annotations"]


@pytest.mark.parametrize("text", [None, 7, "", "spec", "spec=", "=4", "spec=all=all", "spec=-1", "spec=" + "9" * 5000])
def test_whatever_stands_in_the_annotation_of_what_is_remembered_is_read(text):
    kind, manifest = sized("volcanojob", "worker=1:8")
    manifest["metadata"]["annotations"][STATED] = text
    kind.resize(manifest, "worker", 3)
    assert STATED not in manifest["metadata"]["annotations"]


def test_volcano_learns_of_the_min_of_a_task_before_it_takes_all_replicas_for_it():
    kind, manifest = sized("volcanojob", "worker=1:5")
    del manifest["spec"]["minAvailable"]
    kind.set_defaults(manifest)
    assert manifest["spec"]["minAvailable"] == 3
    assert [task.get("minAvailable") for task in manifest["spec"]["tasks"]] == [None, 1]
