"""TrainJobs and their runtimes: found, kept while the job is placed, sent along, played in order, and shown to nobody twice."""

from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kube.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS, TRAINING_RUNTIMES
from fleet.models import Grant
from jobs.kinds.base import RESOLVED
from jobs.models import Dependent, Job
from jobs.services.submission.changes import actions
from simulator.operators.training_runtimes import FINALIZER
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
POLICY, RUNTIME, TRAINJOB = (
    (EXAMPLES / f"{name}.yaml").read_text() for name in ("policy", "trainingruntime", "trainjob")
)
INITIALIZED = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: tuned}
spec:
  mlPolicy: {torch: {}}
  template:
    spec:
      replicatedJobs:
        - name: dataset-initializer
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
            spec:
              template:
                metadata: {annotations: {convoy.dev/duration: 10s}}
                spec: {containers: [{name: dataset-initializer, image: fetch}]}
        - name: node
          dependsOn: [{name: dataset-initializer, status: Complete}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                metadata: {annotations: {convoy.dev/duration: 30s}}
                spec: {containers: [{name: node, image: torch}]}
"""


def asking(gpus: int, nodes: int | None = None) -> str:
    """The example; without a number of nodes it has as many as its runtime says."""
    job = yaml.safe_load(TRAINJOB)
    trainer = job["spec"]["trainer"]
    trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] = gpus
    if nodes is None:
        del trainer["numNodes"]
    else:
        trainer["numNodes"] = nodes
    return yaml.safe_dump(job)


def of_nodes(nodes: int) -> str:
    runtime = yaml.safe_load(RUNTIME)
    runtime["spec"]["mlPolicy"]["numNodes"] = nodes
    return yaml.safe_dump(runtime)


def pods(name: str = "bert-torch") -> int:
    return sum(role["replicas"] for role in Job.objects.get(name=name).roles)


def test_a_job_finds_its_runtime_in_the_same_file_wherever_it_stands(world):
    world.apply(TRAINJOB, RUNTIME)
    assert pods() == 3


def test_a_job_without_its_runtime_is_refused_and_nothing_is_stored(world):
    with pytest.raises(InvalidInput, match="there is no ClusterTrainingRuntime torch-distributed"):
        world.apply(TRAINJOB)
    with pytest.raises(InvalidInput, match="there is no TrainingRuntime torch-distributed"):
        world.apply(
            RUNTIME, TRAINJOB.replace("name: torch-distributed", "name: torch-distributed\n    kind: TrainingRuntime")
        )
    assert not Job.objects.exists() and not Dependent.objects.exists()


def test_a_waiting_job_takes_a_changed_runtime_when_it_is_applied_again(world):
    world.apply(of_nodes(2), asking(1))
    world.apply(of_nodes(4))
    assert pods() == 2
    world.apply(asking(1))
    assert pods() == 4


def test_a_placed_job_keeps_the_runtime_it_was_placed_by(world):
    world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, of_nodes(2), asking(1))
    before = world.expect("bert-torch", "Running").manifest[RESOLVED]
    world.apply(of_nodes(4))
    labelled = yaml.safe_load(asking(1))
    labelled["metadata"]["labels"] = {"team": "vision"}
    world.apply(yaml.safe_dump(labelled))
    actions.delete_dependent(Dependent.objects.get(), by="test", now=timezone.now())
    world.apply(yaml.safe_dump(labelled))
    job = world.job("bert-torch")
    assert (job.labels, job.manifest[RESOLVED], pods()) == ({"team": "vision"}, before, 2)


def test_it_runs_by_a_runtime_of_its_own_and_leaves_that_of_the_member_alone(world):
    world.member("north", 8)
    client = world.clients["north"]
    theirs = client.create(CLUSTER_TRAINING_RUNTIMES.path(), yaml.safe_load(of_nodes(7)))
    world.apply(POLICY, RUNTIME.replace("duration: 20s", "duration: 10h"), TRAINJOB)
    world.expect("bert-torch", "Running", on="north")
    copy = client.get(TRAIN_JOBS.path("default", "bert-torch"))
    assert copy["spec"]["runtimeRef"]["kind"] == "TrainingRuntime" and RESOLVED not in copy
    assert len(client.list(TRAINING_RUNTIMES.path("default"))["items"]) == 1
    env = {e["name"]: e.get("value") for e in world.pods("north")[0]["spec"]["containers"][0]["env"]}
    assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("3", "1")
    assert env["PET_MASTER_ADDR"] == "bert-torch-node-0-0.bert-torch"
    world.finish("bert-torch")
    world.expect("bert-torch", "Succeeded")
    conditions = {c["type"]: c["status"] for c in world.job("bert-torch").status["conditions"]}
    assert conditions == {"Complete": "True"}
    world.delete("bert-torch")
    world.until(lambda: client.list(TRAINING_RUNTIMES.path("default"))["items"] == [], "its own runtime is removed")
    world.until(lambda: client.list(JOB_SETS.path("default"))["items"] == [], "its JobSet is removed")
    assert client.get(CLUSTER_TRAINING_RUNTIMES.path(name="torch-distributed"))["spec"] == theirs["spec"]


def test_the_trainer_keeps_a_runtime_while_a_job_of_the_member_names_it(world):
    world.member("north", 8, time_scale=1.0)
    client = world.clients["north"]
    client.create(CLUSTER_TRAINING_RUNTIMES.path(), yaml.safe_load(of_nodes(2)))
    path, theirs = CLUSTER_TRAINING_RUNTIMES.path(name="torch-distributed"), TRAIN_JOBS.path("default")
    client.create(theirs, yaml.safe_load(asking(1)))
    world.until(lambda: client.get(path)["metadata"].get("finalizers") == [FINALIZER], "the runtime is in use")
    client.delete(path)
    assert client.get(path)["metadata"]["deletionTimestamp"]
    client.delete(f"{theirs}/bert-torch", propagation="Background")
    world.until(lambda: client.list(CLUSTER_TRAINING_RUNTIMES.path())["items"] == [], "it goes with the last job")


def test_the_runtime_of_a_member_is_taken_over_as_the_member_shows_it(world):
    world.member("north", 8)
    path = CLUSTER_TRAINING_RUNTIMES.path()
    world.clients["north"].create(path, yaml.safe_load(of_nodes(2)))
    world.apply(yaml.safe_dump(world.clients["north"].get(f"{path}/torch-distributed")))
    world.apply(asking(1))
    assert pods() == 2


def test_what_fetches_the_data_ends_before_the_training_begins(world):
    world.member("north", 8)
    job = yaml.safe_load(asking(1, 2))
    job["spec"]["runtimeRef"] = {"name": "tuned", "kind": "TrainingRuntime"}
    world.apply(POLICY, INITIALIZED, yaml.safe_dump(job))
    world.until(lambda: "bert-torch-node-0" in groups(world), "the nodes have begun")
    phases = {name: phase for name, phase in pod_phases(world) if "initializer" in name}
    assert list(phases.values()) == ["Succeeded"]
    world.expect("bert-torch", "Succeeded")


def groups(world) -> set[str]:
    return {name.rsplit("-", 2)[0] for name, _ in pod_phases(world)}


def pod_phases(world) -> list[tuple[str, str]]:
    return [(pod["metadata"]["name"], pod["status"]["phase"]) for pod in world.pods("north")]


def test_no_door_shows_or_takes_what_a_job_is_read_by(world, admin, client, tmp_path):
    smuggled = yaml.safe_load(TRAINJOB)
    smuggled[RESOLVED] = {"runtime": {}, "from": {}}
    world.apply(RUNTIME, yaml.safe_dump(smuggled))
    assert pods() == 3
    client.force_login(admin)
    shown = client.get(f"/api/v1/jobs/{Job.objects.get().uid}/").json()["manifest"]
    assert set(shown) == {"apiVersion", "kind", "metadata", "spec"}
    with served(tmp_path) as kubectl:
        ada = kubectl.as_user("ada")
        assert RESOLVED not in ada.says("get", "trainjob", "bert-torch", "-ojson")
        example = str(EXAMPLES / "trainjob.yaml")
        assert "configured" in ada.says("apply", "-f", example)
        assert "bert-torch unchanged" in ada.says("apply", "-f", example)
        assert "torch-distributed" in ada.says("get", "clustertrainingruntimes")
        assert "numNodes" in ada.says("explain", "trainjob.spec.trainer")


def test_only_a_fleet_admin_changes_the_runtimes_of_all_namespaces(world, as_editor, editor):
    Grant.objects.create(user=editor, role=Grant.Role.EDITOR, namespace="")

    def applied(text: str) -> int:
        return as_editor.post("/api/v1/apply", data=text, content_type="application/yaml").status_code

    assert applied(RUNTIME) == 403
    world.apply(RUNTIME)
    assert as_editor.delete(f"/api/v1/dependents/{Dependent.objects.get().uid}/").status_code == 403
    assert applied(yaml.safe_dump({**yaml.safe_load(RUNTIME), "kind": "TrainingRuntime"})) == 200
