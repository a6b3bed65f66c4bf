"""TrainJobs on real kube-apiservers: their runtimes found, sent and left alone, their states followed.

No Kubeflow Trainer, JobSet operator, Job controller or kubelet runs there: the simulator's are clients of the real API server,
in their place. What the API server itself does is real: it prunes, fills in defaults, checks, and keeps status apart.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS, TRAINING_RUNTIMES
from jobs.core.failover.rules import Outcome
from jobs.kinds.base import RESOLVED
from jobs.kubeapi.kinds import kinds
from jobs.models import Attempt, Dependent, Work
from jobs.services.submission.changes import actions
from simulator.operators.training_runtimes import FINALIZER
from tests.realkube.builders import RealWorld, is_kept
from tests.realkube.control_plane import needs_realkube
from tests.support import laws

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
POLICY, RUNTIME, TRAINJOB = (
    (EXAMPLES / f"{name}.yaml").read_text() for name in ("policy", "trainingruntime", "trainjob")
)
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Immediately}}""",
)
NAME = "bert-torch"
LONG = "100h"
FAILS = {"convoy.dev/duration": "1s", "convoy.dev/exit-code": "1"}
TWO_GROUPS = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: fetched}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    metadata: {labels: {team: vision}}
    spec:
      network: {publishNotReadyAddresses: true}
      successPolicy: {operator: All, targetReplicatedJobs: [node]}
      failurePolicy: {maxRestarts: 0}
      replicatedJobs:
        - name: dataset-initializer
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
            spec:
              template:
                metadata: {annotations: {convoy.dev/duration: 5s}}
                spec: {containers: [{name: dataset-initializer, image: fetch}]}
        - name: node
          dependsOn: [{name: dataset-initializer, status: Complete}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              backoffLimit: 0
              template:
                metadata: {annotations: {convoy.dev/duration: 100h}}
                spec:
                  containers:
                    - name: node
                      image: torch
                      resources: {limits: {nvidia.com/gpu: 3}}
"""


def runtime(nodes: int = 1, **notes: str) -> str:
    """The example's, with annotations of its pods."""
    made = yaml.safe_load(RUNTIME)
    made["spec"]["mlPolicy"]["numNodes"] = nodes
    group = made["spec"]["template"]["spec"]["replicatedJobs"][0]
    group["template"]["spec"]["backoffLimit"] = 0
    group["template"]["spec"]["template"]["metadata"]["annotations"] |= notes
    return yaml.safe_dump(made)


def train_job(name: str = NAME, **trainer: Any) -> str:
    """The example, its trainer changed; a field of None is left out."""
    made = yaml.safe_load(TRAINJOB)
    made["metadata"]["name"] = name
    merged = {**made["spec"]["trainer"], **trainer}
    made["spec"]["trainer"] = {field: value for field, value in merged.items() if value is not None}
    return yaml.safe_dump(made)


def gpus(count: int) -> dict[str, Any]:
    return {"limits": {"nvidia.com/gpu": count}}


def pods_by_gpus(real: RealWorld, member: str) -> list[int]:
    """Of the pods of this test's namespace there, the GPUs that each really asks for."""
    containers = [pod["spec"]["containers"][0] for pod in real.pods(member)]
    return [int(container["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for container in containers]


def conditions(real: RealWorld) -> dict[str, str]:
    """As kubectl shows them at the fleet."""
    shown = next(kind for kind in kinds() if kind.served.resource == TRAIN_JOBS).render(real.world.job(NAME))
    return {c["type"]: c["status"] for c in shown["status"]["conditions"]}


def test_it_runs_one_to_its_end_and_leaves_nothing(real):
    north = real.join("north")[0]
    real.apply(POLICY, RUNTIME.replace("duration: 20s", f"duration: {LONG}"), TRAINJOB)
    job = real.world.expect(NAME, "Running", on="north")
    copy, beside = real.copy("north", NAME, TRAIN_JOBS), real.copy("north", NAME, TRAINING_RUNTIMES)
    assert copy["spec"]["runtimeRef"] == {"apiGroup": TRAIN_JOBS.group, "kind": "TrainingRuntime", "name": NAME}
    assert copy["spec"]["trainer"] == {"numNodes": 3, "numProcPerNode": 1}
    assert is_kept(beside["spec"], job.manifest[RESOLVED]["runtime"])
    assert FINALIZER in beside["metadata"].get("finalizers", [])
    assert pods_by_gpus(real, "north") == [1, 1, 1]
    real.world.until(lambda: (real.world.job(NAME).status or {}).get("jobsStatus"), "the counts are followed")
    assert real.world.job(NAME).status["jobsStatus"][0]["name"] == "node"
    real.finish(NAME)
    real.world.expect(NAME, "Succeeded")
    assert conditions(real) == {"Complete": "True"}
    laws.terminal_holds_nothing()
    real.world.delete(NAME)
    real.world.until(lambda: not real.pods("north") and not Work.objects.exists(), "its work has ended")
    for resource in (TRAIN_JOBS, TRAINING_RUNTIMES, JOB_SETS):
        path = resource.path(real.namespace)
        real.world.until(lambda path=path: not north.client.list(path)["items"], f"no {resource.plural} are left")


def test_its_size_is_that_of_the_template_where_it_says_nothing(real):
    real.join("north")
    job = yaml.safe_load(train_job(numNodes=None, resourcesPerNode=None, numProcPerNode=None))
    job["spec"]["runtimeRef"] = {"name": "fetched", "kind": "TrainingRuntime"}
    real.apply(POLICY, TWO_GROUPS, yaml.safe_dump(job))
    asked = {
        role["name"]: (role["replicas"], role["request"].get("nvidia.com/gpu", 0))
        for role in real.world.job(NAME).roles
    }
    assert asked == {"dataset-initializer": (1, 0), "node": (2, 3)}
    real.world.until(lambda: pods_by_gpus(real, "north").count(3) == 2, "the nodes run once the data is there")
    beside = real.copy("north", NAME, TRAINING_RUNTIMES)
    assert is_kept(beside["spec"], real.world.job(NAME).manifest[RESOLVED]["runtime"])
    assert real.copy("north", NAME, JOB_SETS)["metadata"]["labels"]["team"] == "vision"
    real.finish(NAME)
    real.world.expect(NAME, "Succeeded")


def test_processes_of_a_node_share_what_the_node_asks_for(real):
    real.join("north")
    real.apply(
        POLICY,
        runtime(**{"convoy.dev/duration": LONG}),
        train_job(numNodes=2, numProcPerNode=4, resourcesPerNode=gpus(4)),
    )
    real.world.expect(NAME, "Running")
    assert pods_by_gpus(real, "north") == [4, 4]
    env = {e["name"]: e.get("value") for e in real.pods("north")[0]["spec"]["containers"][0]["env"]}
    assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("2", "4")


def test_the_member_without_the_runtime_runs_it_as_well_as_the_one_that_has_another_of_its_name(real):
    """The runtime travels with the job: what members have under its name is neither needed, nor read, nor touched."""
    north, _south = real.join("north", "south")
    path = CLUSTER_TRAINING_RUNTIMES.path()
    theirs = north.client.create(path, yaml.safe_load(runtime(7)))
    lasting = runtime(**{"convoy.dev/duration": LONG})
    real.apply(POLICY, lasting, *(train_job(name, numNodes=2, resourcesPerNode=gpus(4)) for name in ("one", "two")))
    homes = {str(real.world.expect(name, "Running").cluster): name for name in ("one", "two")}
    assert set(homes) == {"north", "south"}
    for member, name in homes.items():
        assert pods_by_gpus(real, member) == [4, 4]
        assert real.copy(member, name, TRAINING_RUNTIMES)
    assert north.client.get(f"{path}/torch-distributed")["spec"] == theirs["spec"]


def test_a_waiting_job_keeps_its_size_when_its_runtime_is_changed_and_removed(real):
    north = real.join("north")[0]
    lasting = {"convoy.dev/duration": LONG}
    real.apply(POLICY, runtime(2, **lasting), train_job("first", numNodes=2, resourcesPerNode=gpus(4)))
    real.world.expect("first", "Running")
    real.apply(train_job(numNodes=None, resourcesPerNode=gpus(4)))
    real.world.until(lambda: real.world.job(NAME).reason, "it waits")
    real.apply(runtime(1, **lasting))
    actions.delete_dependent(Dependent.objects.get(), by="test", now=timezone.now())
    real.world.delete("first")
    real.world.expect(NAME, "Running")
    assert pods_by_gpus(real, "north").count(4) == 2
    assert not north.client.list(CLUSTER_TRAINING_RUNTIMES.path())["items"], "none was sent under its own name"


def test_it_suspends_and_resumes(real):
    real.join("north")
    real.apply(POLICY, runtime(**{"convoy.dev/duration": LONG}), train_job(numNodes=2))
    real.world.expect(NAME, "Running")
    real.world.suspend(NAME)
    real.world.expect(NAME, "Suspended")
    real.world.until(lambda: not real.pods("north"), "no pod runs")
    assert conditions(real)["Suspended"] == "True"
    copy = real.copy("north", NAME, TRAIN_JOBS)
    assert copy is None or copy["spec"]["suspend"] is True
    real.world.resume(NAME)
    assert real.world.expect(NAME, "Running").attempt == 2
    assert conditions(real).get("Suspended") != "True"


def test_it_reports_one_that_failed(real):
    real.join("north")
    real.apply(POLICY, runtime(**FAILS), train_job(numNodes=2))
    real.world.expect(NAME, "Failed")
    assert conditions(real)["Failed"] == "True"
    laws.terminal_holds_nothing()


def test_it_moves_one_that_failed(real):
    real.join("north", "south")
    real.apply(FAILOVER, runtime(**FAILS), train_job(numNodes=2))
    real.world.until(lambda: Attempt.objects.filter(job__name=NAME).count() >= 2, "there is a second attempt")
    first, second = Attempt.objects.filter(job__name=NAME).order_by("number")[:2]
    assert first.outcome == Outcome.FAILED and second.cluster_name != first.cluster_name


def test_it_moves_one_with_its_runtime_when_the_member_is_away(real):
    members = {member.name: member for member in real.join("north", "south")}
    real.apply(FAILOVER, runtime(**{"convoy.dev/duration": LONG}), train_job(numNodes=2))
    home = str(real.world.expect(NAME, "Running").cluster)
    other = next(name for name in members if name != home)
    members[home].line.cut()
    assert real.world.expect(NAME, "Running", on=other).attempt == 2
    assert real.copy(other, NAME, TRAINING_RUNTIMES)
    members[home].line.mend()
    for resource in (TRAIN_JOBS, TRAINING_RUNTIMES):
        real.world.until(lambda r=resource: real.clusters_with(NAME, r) == [other], f"one {resource.kind} is left")
    assert len(real.pods(other)) == 2
