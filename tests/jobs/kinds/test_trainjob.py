"""TrainJob: its size from its own numbers and its runtime's template, what can never run, and what is sent to a member."""

import copy

import pytest
import yaml

from jobs.kinds import derived_names, registry, training_runtime
from jobs.kinds.base import RESOLVED, marked

KIND = registry.kind_of("trainer.kubeflow.org/v1alpha1", "TrainJob")
TORCH = yaml.safe_load("""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 60}}
  template:
    spec:
      ttlSecondsAfterFinished: 5
      replicatedJobs:
        - name: dataset-initializer
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
            spec: {template: {spec: {containers: [{name: dataset-initializer, image: fetch}]}}}
        - name: node
          dependsOn: [{name: dataset-initializer, status: Complete}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  containers:
                    - {name: node, image: torch, resources: {limits: {nvidia.com/gpu: 8, cpu: 4}}}
                    - {name: sidecar, image: side, resources: {limits: {cpu: 1}}}
""")
DEEPSPEED = yaml.safe_load("""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: deepspeed, namespace: ai}
spec:
  mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, runLauncherAsNode: true}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template: {spec: {template: {spec: {containers: [{name: node, image: ds}]}}}}
        - name: launcher
          dependsOn: [{name: node, status: Ready}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: {containers: [{name: node, image: ds}]}}}
""")


MARKED = {"metadata": {"labels": {training_runtime.STEP: training_runtime.TRAINER}}}


def patching(group: str) -> dict:
    """A patch of the runtime that names a group."""
    spec = {"replicatedJobs": [{"name": group, "template": {}}]}
    return {"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": spec}}}


def job(runtime: dict = TORCH, **spec: object) -> dict:
    """A TrainJob as a door hands it to its kind, with its runtime found."""
    reference = {"name": runtime["metadata"]["name"], "kind": runtime["kind"]}
    head = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    made = {**head, "metadata": {"name": "bert", "namespace": "ai"}, "spec": {"runtimeRef": reference, **spec}}
    KIND.resolve(made, lambda kind, namespace, name: copy.deepcopy(runtime))
    return made


def sizes(manifest: dict) -> dict[str, tuple[int, int]]:
    """By role: pods, and GPUs of each."""
    reading = KIND.read(manifest)
    assert reading.faults == ()
    return {role.name: (role.replicas, role.request.get("nvidia.com/gpu", 0)) for role in reading.roles}


def test_its_size_is_that_of_the_runtime_where_the_job_says_nothing():
    assert sizes(job()) == {"dataset-initializer": (1, 0), "node": (2, 8)}


def test_its_own_numbers_come_first():
    trainer = {"numNodes": 5, "numProcPerNode": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}
    made = job(trainer=trainer)
    assert sizes(made) == {"dataset-initializer": (1, 0), "node": (5, 2)}
    assert KIND.read(made).total()["cpu"] == 5 * (4000 + 1000)


def test_initializers_end_before_the_training_begins_and_are_not_in_its_gang():
    made = job(trainer={"numNodes": 3})
    assert KIND.read(made).gang == 3
    assert [role for role, _ in KIND.gang_templates(made)] == ["node"]


@pytest.mark.parametrize(("nodes", "beside"), [(None, 1), (1, 1), (4, 3)])
def test_a_launcher_that_trains_is_one_of_the_nodes_of_an_mpi_job(nodes, beside):
    trainer = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}, **({"numNodes": nodes} if nodes else {})}
    made = job(DEEPSPEED, trainer=trainer)
    assert sizes(made) == {"node": (beside, 4), "launcher": (1, 4)}
    assert [role for role, _ in KIND.gang_templates(made)] == ["node"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"trainer": {"numNodes": 0}}, "spec.trainer.numNodes"),
        ({"trainer": {"numNodes": "3"}}, "spec.trainer.numNodes"),
        ({"trainer": {"numProcPerNode": 0}}, "spec.trainer.numProcPerNode"),
        ({"trainer": {"env": [{}]}}, "spec.trainer.env[0].name"),
        ({"runtimeRef": {"name": "torch", "kind": "Runtime"}}, "spec.runtimeRef.kind"),
        ({"runtimePatches": [{"trainingRuntimeSpec": 1}]}, "spec.runtimePatches[0].trainingRuntimeSpec"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, "spec.managedBy"),
    ],
)
def test_it_names_the_field_that_is_wrong(spec, field):
    assert [fault.field for fault in KIND.read(job(**spec)).faults] == [field]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"initializer": {"model": {"storageUri": "hf://a"}}}, "spec.initializer.model"),
        (
            {"runtimePatches": [patching("nodes")]},
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].name",
        ),
        ({"trainer": {"env": [{"name": "A"}, {"name": "PET_NNODES"}]}}, "spec.trainer.env[1].name"),
    ],
)
def test_it_refuses_what_its_runtime_has_no_place_for(spec, field):
    assert [fault.field for fault in KIND.read(job(**spec)).faults] == [field]


def test_variables_of_another_policy_are_not_reserved():
    assert not KIND.read(job(trainer={"env": [{"name": "DMLC_TASK_ID", "value": "1"}]})).faults


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"replicas": 2}, "replicas"),
        (
            {"template": {**MARKED, "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}}},
            "template.spec.template.spec.containers",
        ),
    ],
)
def test_a_runtime_that_the_trainer_would_refuse_is_refused(change, field):
    runtime = copy.deepcopy(TORCH)
    runtime["spec"]["template"]["spec"]["replicatedJobs"][1] |= change
    faults = training_runtime.faults_of(runtime).found
    assert [fault.field for fault in faults] == [f"spec.template.spec.replicatedJobs[1].{field}"]


def test_it_says_which_runtime_is_missing():
    made = job()
    KIND.resolve(made, lambda *_: None)
    [fault] = KIND.read(made).faults
    assert fault.field == "spec.runtimeRef" and "no ClusterTrainingRuntime torch" in fault.detail


@pytest.mark.parametrize("name", ["4bert", "b" * 50, "be.rt"])
def test_it_refuses_names_of_which_no_pods_can_be_named(name):
    made = job()
    made["metadata"]["name"] = name
    assert [fault.field for fault in derived_names.faults(KIND, made, KIND.read(made).roles)] == ["metadata.name"]


def test_it_warns_when_the_number_of_nodes_has_no_effect():
    runtime = copy.deepcopy(TORCH)
    del runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]["metadata"]
    assert "no effect" in KIND.read(job(runtime, trainer={"numNodes": 3})).warnings[0]


def test_a_patch_of_the_runtime_reaches_the_pods_it_names():
    pod = {
        "spec": {
            "nodeSelector": {"zone": "a"},
            "containers": [{"name": "sidecar", "env": [{"name": "A", "value": "1"}]}],
        }
    }
    change = {"name": "node", "template": {"spec": {"template": pod}}}
    spec = {"template": {"spec": {"replicatedJobs": [change]}}}
    made = job(runtimePatches=[{"manager": "example.com/me", "trainingRuntimeSpec": spec}])
    templates = dict(KIND.templates(made))
    assert templates["node"]["spec"]["nodeSelector"] == {"zone": "a"}
    assert [c["name"] for c in templates["node"]["spec"]["containers"]] == ["node", "sidecar"]
    assert "nodeSelector" not in templates["dataset-initializer"]["spec"]


def test_a_patch_that_breaks_the_pods_is_refused():
    change = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": 7}}}}}
    patch = {"manager": "x/y", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
    assert [fault.field for fault in KIND.read(job(runtimePatches=[patch])).faults] == ["spec.runtimeRef"]


def test_it_fetches_what_its_initializer_names_with_the_secret_it_names():
    made = job(initializer={"dataset": {"storageUri": "s3://data", "secretRef": {"name": "key"}}})
    [container] = dict(KIND.templates(made))["dataset-initializer"]["spec"]["containers"]
    assert container["env"] == [{"name": "STORAGE_URI", "value": "s3://data"}]
    assert container["envFrom"] == [{"secretRef": {"name": "key"}}]


def test_writing_a_job_into_its_runtime_twice_changes_nothing():
    spec = {"trainer": {"numNodes": 3, "image": "mine", "env": [{"name": "A", "value": "1"}]}}
    once = training_runtime.effective(TORCH["spec"], spec)
    assert training_runtime.effective(once, spec) == once


def test_it_is_sent_with_a_runtime_of_its_own_that_bears_the_marks():
    made = job(trainer={"numNodes": 3, "image": "mine", "numProcPerNode": 2})
    sent = marked(KIND, made, {"mark": "1"})
    KIND.drop_ttl(sent)
    [(resource, runtime)] = KIND.companions(sent)
    assert (resource.kind, runtime["metadata"]["name"], runtime["metadata"]["namespace"]) == (
        "TrainingRuntime",
        "bert",
        "ai",
    )
    groups = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert all(group["template"]["spec"]["template"]["metadata"]["labels"] == {"mark": "1"} for group in groups)
    assert "ttlSecondsAfterFinished" not in runtime["spec"]["template"]["spec"]
    assert "podGroupPolicy" not in runtime["spec"]
    assert groups[1]["template"]["spec"]["parallelism"] == 3
    assert sent["spec"]["runtimeRef"]["kind"] == "TrainingRuntime" and sent["spec"]["runtimeRef"]["name"] == "bert"
    assert sent["spec"]["trainer"] == {"numNodes": 3, "numProcPerNode": 2} and RESOLVED not in sent
    assert RESOLVED in made


def test_an_override_of_what_is_written_into_the_pods_already_is_refused():
    made = job(trainer={"image": "mine"})
    made["spec"]["trainer"]["image"] = "other"
    assert [fault.field for fault in KIND.read(made).faults] == ["spec.trainer"]


@pytest.mark.parametrize(
    ("true", "pods", "phase"),
    [
        ("", 0, "Created"),
        ("", 1, "Running"),
        ("Suspended", 0, "Suspended"),
        ("Complete", 0, "Succeeded"),
        ("Failed", 1, "Failed"),
    ],
)
def test_it_reads_the_conditions_of_the_trainer(true, pods, phase):
    status = {"conditions": [{"type": true, "status": "True", "message": "m"}]} if true else {}
    assert KIND.read_status(status, pods).phase == phase
