"""The whole session of the documentation Convoy was asked for with, command by command, with a kubectl nobody here built.

Both variants of its policy: with ``suspension.scheduling: true`` the queue releases the job, without it the job goes at once.
What is printed is compared with the documentation's, names of clusters, suffixes and ages aside.
"""

import re
from dataclasses import dataclass

import pytest
import yaml

from tests.support.amc import Amc, cells
from tests.support.kubectl import Person, served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

TREE = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata:
  name: elasticquotatree
  namespace: kube-system
spec:
  root:
    name: root
    max: {cpu: 999900, memory: 400000Gi, kube-queue/max-jobs: 10000000000, nvidia.com/gpu: 100000}
    min: {cpu: 999900, memory: 400000Gi, kube-queue/max-jobs: 10000000000, nvidia.com/gpu: 100000}
    children:
    - name: child-2
      max: {kube-queue/max-jobs: 1, cpu: 10000, nvidia.com/gpu: 10000, memory: 10000Gi}
      namespaces:
      - default
"""
POLICY = """
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata:
  name: example-policy
spec:
  propagateDeps: true
  failover:
    application:
      decisionConditions:
        tolerationSeconds: 30
      purgeMode: Immediately
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      customSchedulingType: Gang
  resourceSelectors:
  - apiVersion: kubeflow.org/v1
    kind: PyTorchJob
"""
QUEUED_POLICY = POLICY.replace("spec:\n", "spec:\n  suspension:\n    scheduling: true\n", 1)
AGE = re.compile(r"\d+[smhd]\S*")


@dataclass
class Session:
    kubectl: Person
    amc: Amc

    def apply(self, document: str) -> str:
        return self.kubectl.says("apply", "-f", "-", given=document)

    def table(self, *args: str) -> list[list[str]]:
        return cells(self.kubectl.says(*args))


@pytest.fixture
def session(world, admin, tmp_path):
    world.member("north", 8)
    world.member("south", 1)
    with served(tmp_path) as door:
        ada = door.as_user("ada")
        yield Session(ada, Amc(ada.file))


@pytest.mark.parametrize("policy", [POLICY, QUEUED_POLICY], ids=["gang alone", "quota tree and gang"])
def test_it_runs_the_documentations_session(world, session, policy):
    assert session.apply(TREE) == "elasticquotatree.scheduling.sigs.k8s.io/elasticquotatree created\n"
    header, *queues = session.table("get", "queue", "-n", "kube-queue")
    assert header == ["NAME", "AGE"]
    assert all(AGE.fullmatch(age) for _, age in queues)
    assert {re.sub(r"-[a-z0-9]{5}$", "", name) for name, _ in queues} == {"root-child-2", "root"}
    told = session.apply(policy)
    assert told.startswith("propagationpolicy.policy.one.alibabacloud.com/example-policy created\n")
    assert "Warning: spec.failover.application.purgeMode" in told
    assert session.apply(pytorch_job("pytorch-test", duration="1h")) == "pytorchjob.kubeflow.org/pytorch-test created\n"
    world.expect("pytorch-test", "Running", on="north")
    header, row = session.table("get", "pytorchjob")
    assert (header, row[:2]) == (["NAME", "STATE", "AGE"], ["pytorch-test", "Running"]) and AGE.fullmatch(row[2])
    assert_described(session.kubectl.says("describe", "pytorchjob", "pytorch-test"))
    assert_seen_in_the_clusters(session.amc)


def assert_described(text: str) -> None:
    line = next(line for line in text.splitlines() if "ScheduleBindingSucceed" in line).split(maxsplit=4)
    assert [line[0], line[1], line[3]] == ["Normal", "ScheduleBindingSucceed", "default-scheduler"]
    assert AGE.fullmatch(line[2])
    assert line[4] == "Binding has been scheduled successfully. Result: {north:0,[{master 1} {worker 2}]}"


def assert_seen_in_the_clusters(amc: Amc) -> None:
    header, row = cells(amc.says("get", "pytorchjob", "-M"))
    assert header == ["NAME", "CLUSTER", "STATE", "AGE", "ADOPTION"]
    assert [*row[:3], row[4]] == ["pytorch-test", "north", "Running", "Y"]
    header, *rows = cells(amc.says("get", "pod", "-M"))
    assert header == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"]
    pods = [f"pytorch-test-{role}" for role in ("master-0", "worker-0", "worker-1")]
    assert [row[:5] for row in rows] == [[pod, "north", "1/1", "Running", "0"] for pod in pods]
    live = yaml.safe_load(amc.says("get", "pytorchjob", "pytorch-test", "-m", "north", "-oyaml"))
    assert (live["kind"], live["status"]["replicaStatuses"]["Worker"]["active"]) == ("PyTorchJob", 2)


def test_the_queue_releases_one_job_at_a_time_and_shows_the_other_as_created(world, session):
    for document in (TREE, QUEUED_POLICY, pytorch_job("pytorch-test", duration="1h")):
        session.apply(document)
    world.expect("pytorch-test", "Running")
    session.apply(pytorch_job("second", duration="1h"))
    world.until(lambda: (world.job("second").reason or {}).get("code") == "MaxJobsReached", "the second waits")
    states = {name: state for name, state, _ in session.table("get", "pytorchjob", "--no-headers")}
    assert states == {"pytorch-test": "Running", "second": "Created"}
    assert "root/child-2 has max 1 job" in session.kubectl.says("describe", "pytorchjob", "second")
    session.kubectl.says("delete", "pytorchjob", "pytorch-test")
    world.expect("second", "Running")
