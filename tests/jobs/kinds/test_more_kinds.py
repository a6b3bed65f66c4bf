"""The other kinds: what each example of the docs asks for, the faults a manifest can have, the status in their own words."""

import pytest

from jobs.kinds.base import Phase, marked
from tests.jobs.kinds.builders import changed, example

GIB = 2**30
NAMES = ("trainingjob", "elasticjob", "rayjob", "jobset", "sparkapplication", "volcanojob")


@pytest.mark.parametrize(
    ("name", "roles", "gang", "total"),
    [
        ("trainingjob", {"launcher": 1, "worker": 2}, 2, {"cpu": 5000, "nvidia.com/gpu": 2, "pods": 3}),
        ("elasticjob", {"dlrover-master": 1, "worker": 2}, 2, {"cpu": 9000, "nvidia.com/gpu": 2, "pods": 3}),
        ("rayjob", {"head": 1, "gpus": 2, "submitter": 1}, 3, {"cpu": 10500, "nvidia.com/gpu": 2, "pods": 4}),
        ("jobset", {"driver": 1, "workers": 4}, 5, {"cpu": 5000, "nvidia.com/gpu": 4, "pods": 5}),
        ("sparkapplication", {"driver": 1, "executor": 2}, 2, {"cpu": 5000, "pods": 3}),
        ("volcanojob", {"ps": 1, "worker": 2}, 3, {"cpu": 6000, "nvidia.com/gpu": 2, "pods": 3}),
    ],
)
def test_it_reads_roles_gang_and_total(name, roles, gang, total):
    kind, manifest = example(name)
    reading = kind.read(manifest)
    assert reading.faults == () and {r.name: r.replicas for r in reading.roles} == roles and reading.gang == gang
    asked = reading.total()
    assert {resource: asked[resource] for resource in total} == total


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_suspended_and_released_and_every_pod_is_marked(name):
    kind, manifest = example(name)
    kind.suspend(manifest, True)
    assert kind.read(manifest).suspended
    kind.suspend(manifest, False)
    assert not kind.read(manifest).suspended
    made = marked(kind, manifest, {"mark": "1"})
    assert all(template["metadata"]["labels"]["mark"] == "1" for _, template in kind.templates(made))
    assert {role for role, _ in kind.templates(made)} == {role.name for role in kind.read(manifest).roles}


@pytest.mark.parametrize(
    ("name", "path", "value", "field"),
    [
        ("trainingjob", "spec/etReplicaSpecs/launcher/replicas", 2, "launcher.replicas"),
        ("trainingjob", "spec/etReplicaSpecs/worker/minReplicas", 3, "worker.replicas"),
        ("trainingjob", "spec/etReplicaSpecs/worker/replicas", 0, "worker"),
        ("trainingjob", "spec/restartPolicy", "Always", "restartPolicy"),
        ("elasticjob", "spec/replicaSpecs/master", {}, "replicaSpecs.master"),
        ("elasticjob", "spec/replicaSpecs/worker/restartCount", -1, "restartCount"),
        ("elasticjob", "spec/distributionStrategy", "Ring", "distributionStrategy"),
        ("elasticjob", "spec/replicaSpecs/worker/replicas", 0, "replicaSpecs"),
        ("rayjob", "spec/entrypoint", "", "entrypoint"),
        ("rayjob", "spec/clusterSelector", {"ray.io/cluster": "x"}, "clusterSelector"),
        ("rayjob", "spec/rayClusterSpec/workerGroupSpecs/0/groupName", "head", "groupName"),
        ("rayjob", "spec/rayClusterSpec/workerGroupSpecs/0/maxReplicas", 1, "replicas"),
        ("rayjob", "spec/rayClusterSpec/headGroupSpec", None, "headGroupSpec"),
        ("jobset", "spec/replicatedJobs", [], "replicatedJobs"),
        ("jobset", "spec/replicatedJobs/1/name", "driver", "replicatedJobs[1].name"),
        ("jobset", "spec/successPolicy", {"operator": "All", "targetReplicatedJobs": ["x"]}, "targetReplicatedJobs"),
        ("jobset", "spec/managedBy", "kueue.x-k8s.io/multikueue", "managedBy"),
        ("sparkapplication", "spec/type", "Perl", "type"),
        ("sparkapplication", "spec/driver/memory", "lots", "driver.memory"),
        ("sparkapplication", "spec/dynamicAllocation", {"enabled": True}, "maxExecutors"),
        ("volcanojob", "spec/minAvailable", 4, "minAvailable"),
        ("volcanojob", "spec/tasks/1/name", "ps", "tasks[1].name"),
        ("volcanojob", "spec/tasks", [], "tasks"),
    ],
)
def test_it_names_the_field_at_fault(name, path, value, field):
    kind, manifest = example(name)
    assert any(field in fault.field for fault in kind.read(changed(manifest, path, value)).faults)


@pytest.mark.parametrize(
    ("name", "status", "phase"),
    [
        ("trainingjob", {"phase": "Scaling"}, Phase.RUNNING),
        ("trainingjob", {"phase": "Restarting"}, Phase.RESTARTING),
        ("elasticjob", {"phase": "Pending", "status": {"conditions": []}}, Phase.CREATED),
        ("elasticjob", {"phase": "Suspended"}, Phase.SUSPENDED),
        ("rayjob", {"jobDeploymentStatus": "Initializing"}, Phase.CREATED),
        ("rayjob", {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED"}, Phase.FAILED),
        ("rayjob", {"jobDeploymentStatus": "Retrying"}, Phase.RESTARTING),
        ("jobset", {"conditions": [{"type": "Completed", "status": "True"}]}, Phase.SUCCEEDED),
        ("jobset", {"conditions": [{"type": "Suspended", "status": "False"}]}, Phase.CREATED),
        ("sparkapplication", {"applicationState": {"state": "PENDING_RERUN"}}, Phase.RESTARTING),
        ("sparkapplication", {"applicationState": {"state": "COMPLETED"}}, Phase.SUCCEEDED),
        ("volcanojob", {"state": {"phase": "Aborted"}}, Phase.SUSPENDED),
        ("volcanojob", {"state": {"phase": "Terminated"}}, Phase.FAILED),
    ],
)
def test_it_reads_the_status_in_the_words_of_the_kind(name, status, phase):
    assert example(name)[0].read_status(status, 0).phase is phase


def test_an_elastic_job_takes_the_other_spelling_of_its_budget_and_says_so():
    kind, manifest = example("elasticjob")
    given = changed(manifest, "spec/replicaSpecs/worker/restartCounts", 5)
    del given["spec"]["replicaSpecs"]["worker"]["restartCount"]
    assert "restartCounts" in kind.read(given).warnings[0]
    worker = marked(kind, given, {})["spec"]["replicaSpecs"]["worker"]
    assert worker["restartCount"] == 5 and "restartCounts" not in worker


def test_an_elastic_jobs_message_is_read_from_the_status_inside_the_status():
    inner = {"conditions": [{"type": "Failed", "status": "True", "message": "worker 1 out of memory"}]}
    state = example("elasticjob")[0].read_status({"phase": "Failed", "status": inner}, 0)
    assert (state.phase, state.message) == (Phase.FAILED, "worker 1 out of memory")


@pytest.mark.parametrize(("given", "asked"), [("512m", 896 * 2**20), ("10g", 10 * GIB + 4 * GIB)])
def test_spark_asks_for_more_memory_than_its_heap(given, asked):
    kind, manifest = example("sparkapplication")
    [driver, _] = kind.read(changed(manifest, "spec/driver/memory", given)).roles
    assert driver.request["memory"] == asked


def test_a_ray_job_that_keeps_its_cluster_is_not_taken_suspended():
    kind, manifest = example("rayjob")
    kept = changed(changed(manifest, "spec/shutdownAfterJobFinishes", False), "spec/suspend", True)
    assert [fault.field for fault in kind.read(kept).faults] == ["spec.suspend"]


@pytest.mark.parametrize(
    ("name", "path"),
    [("sparkapplication", "spec/batchScheduler"), ("rayjob", "metadata/labels"), ("mpijob", "spec/schedulerName")],
)
def test_it_knows_where_each_kind_names_the_scheduler_of_all_its_pods(name, path):
    kind, manifest = example(name)
    value = {"ray.io/scheduler-name": "volcano"} if name == "rayjob" else "volcano"
    assert (kind.scheduler(manifest), kind.scheduler(changed(manifest, path, value))) == ("", "volcano")
