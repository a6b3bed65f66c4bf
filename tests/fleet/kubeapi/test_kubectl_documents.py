"""What kubectl asks of a server before and beside its objects: discovery, explanations, fields nobody knows, refusals."""

import json

import pytest

from jobs.models import Job
from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    with served(tmp_path) as made:
        yield made.as_user("ada")


def test_it_explains_jobs_and_policies(ada):
    told = ada.says("explain", "pytorchjob.spec")
    assert "elasticPolicy" in told and "The roles of the job, Master and Worker." in told
    assert "nodeSelector" in ada.says("explain", "pytorchjob.spec.pytorchReplicaSpecs.template.spec")
    told = ada.says("explain", "propagationpolicy.spec.placement")
    assert "clusterTolerations" in told and "Where the jobs may go." in told
    assert "binaryData" in ada.says("explain", "configmap")


def test_it_means_by_a_job_that_of_kubernetes(ada):
    assert "batch" in ada.says("explain", "job").splitlines()[0]


@pytest.mark.parametrize(("mode", "said"), [("warn", "created"), ("strict", "strict decoding error")])
def test_it_tells_fields_nobody_knows(ada, mode, said):
    manifest = pytorch_job("llama").replace("spec:\n", "spec:\n  runPolcy: {}\n", 1)
    done = ada.tries("create", f"--validate={mode}", "-f", "-", given=manifest)
    assert 'unknown field "spec.runPolcy"' in done.stderr and said in done.stdout + done.stderr
    assert Job.objects.exists() == (mode == "warn")


def test_it_says_nothing_of_them_when_it_is_not_asked(ada):
    manifest = pytorch_job("llama").replace("spec:\n", "spec:\n  runPolcy: {}\n", 1)
    assert "unknown" not in ada.says("create", "--validate=ignore", "-f", "-", given=manifest)


def test_it_knows_every_field_of_what_the_fleet_is_shown_with(ada):
    ada.says("create", "--validate=strict", "-f", "-", given=POLICY)
    ada.says("create", "--validate=strict", "-f", "-", given=pytorch_job("llama"))


def test_it_warns_of_old_spellings(ada):
    failover = "  failover: {application: {decisionConditions: {tolerationSeconds: 5}, purgeMode: Immediately}}\n"
    told = ada.says("apply", "-f", "-", given=POLICY.rstrip("\n") + "\n" + failover)
    assert "Warning: spec.failover.application.purgeMode: Immediately is an old spelling of Directly" in told


def test_it_shows_each_field_at_fault_with_its_value(ada):
    told = ada.refused("apply", "-f", "-", given=pytorch_job("llama").replace("replicas: 1", "replicas: -1"))
    assert 'The PyTorchJob "llama" is invalid' in told and "Invalid value: -1" in told


def test_it_lets_kubectl_say_that_a_kind_is_unknown(ada):
    given = "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: a}\n"
    assert 'no matches for kind "Nothing"' in ada.refused("apply", "-f", "-", given=given)
    assert "the server doesn't have a resource type" in ada.refused("get", "nothings")


def test_it_tells_all_it_serves_at_once(ada):
    told = ada.says("api-resources", "-v=6")
    assert "pytorchjobs" in told and "elasticquotatrees" in told
    assert not [line for line in told.splitlines() if "/apis/kubeflow.org" in line]


def test_it_says_where_it_is_and_what_it_is(ada):
    assert "is running at" in ada.says("cluster-info")
    assert json.loads(ada.says("get", "--raw", "/version"))["major"] == "1"
    assert ada.says("get", "--raw", "/readyz") == "ok"
