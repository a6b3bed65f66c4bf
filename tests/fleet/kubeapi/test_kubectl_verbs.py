"""Every verb a person of Kubernetes has in the fingers, by a stock kubectl, on objects no member has seen."""

import asyncio
import json
import sys

import pytest
from django.utils import timezone

from deploy.config.kube import application
from fleet.services.authorization import access
from jobs.models import Job
from tests.support.asgi_door import CONFIG_MAPS, Reader
from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
SUSPENDED = pytorch_job("llama").replace("spec:\n", "spec:\n  runPolicy: {suspend: true}\n", 1)


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    with served(tmp_path) as made:
        yield made.as_user("ada")


@pytest.fixture
def llama(ada):
    ada.says("apply", "--server-side", "-f", "-", given=SUSPENDED)
    return ada


def test_it_applies_on_the_servers_side(ada):
    for word in ("serverside-applied", "serverside-applied"):
        assert word in ada.says("apply", "--server-side", "-f", "-", given=SUSPENDED)
    assert Job.objects.get().suspended


def test_it_keeps_two_appliers_apart(llama):
    other = SUSPENDED.replace("suspend: true", "suspend: false")
    told = llama.refused("apply", "--server-side", "--field-manager=other", "-f", "-", given=other)
    assert 'conflict with "kubectl"' in told and ".spec.runPolicy.suspend" in told
    assert Job.objects.get().suspended
    llama.says("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", given=other)
    assert not Job.objects.get().suspended


def test_it_shows_who_manages_which_field_when_asked(llama):
    shown = json.loads(llama.says("get", "pytorchjob", "llama", "-ojson", "--show-managed-fields"))
    [entry] = shown["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Apply")
    assert "f:suspend" in entry["fieldsV1"]["f:spec"]["f:runPolicy"]
    assert "managedFields" not in llama.says("get", "pytorchjob", "llama", "-oyaml")


def test_it_takes_away_what_an_applier_does_not_say_any_more(llama):
    llama.says("label", "pytorchjob", "llama", "by=hand")
    labelled = SUSPENDED.replace("name: llama", "name: llama\n  labels: {team: vision}", 1)
    for given, labels in ((labelled, {"team": "vision", "by": "hand"}), (SUSPENDED, {"by": "hand"})):
        llama.says("apply", "--server-side", "-f", "-", given=given)
        assert json.loads(llama.says("get", "pytorchjob", "llama", "-ojson"))["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    "asked", [("get", "pytorchjobs"), ("delete", "pytorchjob", "llama"), ("logs", "x"), ("exec", "x", "--", "ls"),
              ("get", "--raw", "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy/api/v1/pods")]
)  # fmt: skip
def test_it_acts_in_no_other_users_name(llama, asked):
    assert "impersonation is not supported" in llama.refused("--as=bob", *asked)
    assert Job.objects.get().deleting_at is None


@pytest.mark.parametrize(("token", "code"), [("never-given", 401), (None, 403)])
def test_it_looks_who_asks_before_it_says_that_nobody_acts_for_others(admin, token, code):
    async def asked(token: str) -> int:
        reader = Reader(application(), token, CONFIG_MAPS, headers=((b"impersonate-user", b"bob"),))
        await reader.task
        return reader.code

    text = token or access.mint(admin, "t", life=None, now=timezone.now())[1]
    assert asyncio.run(asked(text)) == code


def test_it_scales_workers(llama):
    assert "scaled" in llama.says("scale", "pytorchjob", "llama", "--replicas=3")
    assert llama.says("get", "pytorchjob", "llama", "-ojsonpath={..Worker.replicas}") == "3"
    refused = llama.refused("scale", "pytorchjob", "llama", "--replicas=4", "--current-replicas=9")
    assert "Expected replicas to be 9, was 3" in refused


def test_it_scales_nothing_that_has_no_replicas(llama):
    llama.says("apply", "-f", "-", given=POLICY)
    assert "could not find the requested resource" in llama.refused("scale", "pp", "example-policy", "--replicas=2")


def test_it_edits(llama, tmp_path, monkeypatch):
    script = tmp_path / "editor.py"
    change = "f.write_text(f.read_text().replace('suspend: true', 'suspend: false'))"
    script.write_text(f"import pathlib, sys; f = pathlib.Path(sys.argv[-1]); {change}")
    monkeypatch.setenv("KUBE_EDITOR", f"{sys.executable} {script}")
    assert "edited" in llama.says("edit", "pytorchjob", "llama")
    assert not Job.objects.get().suspended


def test_it_shows_the_difference_before_an_apply(llama):
    done = llama.tries("diff", "-f", "-", given=SUSPENDED.replace("suspend: true", "suspend: false"))
    assert done.returncode == 1 and "+    suspend: false" in done.stdout, done.stderr
    assert Job.objects.get().suspended
    assert llama.tries("diff", "--server-side", "-f", "-", given=SUSPENDED).returncode == 0


def test_it_labels_and_annotates(llama):
    assert "labeled" in llama.says("label", "pytorchjob", "llama", "team=vision")
    assert "annotated" in llama.says("annotate", "pytorchjob", "--all", "note=seen")
    assert llama.says("get", "pytorchjob", "-L", "team", "--no-headers").split()[-1] == "vision"
    assert llama.says("get", "pytorchjob", "llama", "-ojsonpath={.metadata.annotations.note}") == "seen"
    assert "unlabeled" in llama.says("label", "pytorchjob", "llama", "team-")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("name", "pytorchjob.kubeflow.org/llama"),
        ("json", '"kind": "PyTorchJob"'),
        ("yaml", "kind: PyTorchJob"),
        ("wide", "FLEET STATE"),
        ("jsonpath={.metadata.name}", "llama"),
        ("custom-columns=N:.metadata.name,K:.kind", "llama   PyTorchJob"),
        ("go-template={{.metadata.name}}", "llama"),
        ("kyaml", 'kind: "PyTorchJob"'),
    ],
)
def test_it_prints_in_every_form(llama, form, said):
    assert said in llama.says("get", "pytorchjob", "llama", "-o", form)


def test_it_sorts(llama):
    for name in ("zeta", "alpha"):
        llama.says("create", "-f", "-", given=pytorch_job(name))
    listed = llama.says("get", "pytorchjob", "--sort-by=.metadata.creationTimestamp", "-oname").split()
    assert len(listed) == 3
    listed = llama.says("get", "pytorchjob", "--sort-by={.metadata.name}", "--no-headers").splitlines()
    assert [line.split()[0] for line in listed] == ["alpha", "llama", "zeta"]


def test_it_replaces_and_waits_and_describes(llama):
    shown = json.loads(llama.says("get", "pytorchjob", "llama", "-ojson"))
    shown["metadata"]["labels"] = {"team": "vision"}
    assert "replaced" in llama.says("replace", "-f", "-", given=json.dumps(shown))
    assert "condition met" in llama.says("wait", "--for=condition=Suspended", "pytorchjob/llama", "--timeout=10s")
    assert "condition met" in llama.says("wait", "--for=jsonpath={.metadata.labels.team}=vision", "pytorchjob/llama")
    told = llama.says("describe", "pytorchjob", "llama")
    assert "Events:" in told and "Submitted by ada" in told
    assert "Submitted" in llama.says("events", "--for", "pytorchjob/llama")
    assert "deleted" in llama.says("delete", "pytorchjob", "--all", "--wait")


def test_it_reads_one_of_many_kinds_at_once(llama):
    llama.says("apply", "-f", "-", given=POLICY)
    listed = llama.says("get", "pytorchjob,pp", "-oname").split()
    assert listed == ["pytorchjob.kubeflow.org/llama", "propagationpolicy.policy.one.alibabacloud.com/example-policy"]
    assert "pytorchjob.kubeflow.org/llama" in llama.says("get", "all")


def test_it_refuses_at_once_to_scale_a_job_that_has_been_placed_and_names_the_field(llama):
    Job.objects.update(attempt=1, state="Running")
    refused = llama.refused("scale", "pytorchjob", "llama", "--replicas=3", "--timeout=30s")
    assert "is invalid: spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: 3" in refused
    assert "suspend the job, apply the change" in refused


ELASTIC = '{"spec":{"runPolicy":{"suspend":false},"elasticPolicy":{"minReplicas":1,"maxReplicas":4}}}'


def test_it_scales_a_job_that_runs_and_shows_the_size_in_force(llama):
    llama.says("patch", "pytorchjob", "llama", "--type=merge", "-p", ELASTIC)
    Job.objects.update(attempt=1, state="Running")
    assert "scaled" in llama.says("scale", "pytorchjob", "llama", "--replicas=1")
    assert llama.says("get", "pytorchjob", "llama", "-ojsonpath={.status.convoy.size.worker.replicas}") == "1"
    assert "scaled" in llama.says("scale", "pytorchjob", "llama", "--replicas=4")
    assert llama.says("get", "pytorchjob", "llama", "-ojsonpath={..Worker.replicas}") == "4"
    assert llama.says("get", "pytorchjob", "llama", "-ojsonpath={.status.convoy.resize.sizes}") == '{"worker":4}'
    assert "worker 1→4 (1-4)" in llama.says("get", "pytorchjob", "-owide")
    llama.says("label", "pytorchjob", "llama", "team=a")
    assert Job.objects.get().resize["sizes"] == {"worker": 4} and Job.objects.get().size["worker"]["replicas"] == 1


def test_it_refuses_to_scale_beyond_the_bounds_with_the_field_and_the_numbers(llama):
    llama.says("patch", "pytorchjob", "llama", "--type=merge", "-p", ELASTIC)
    Job.objects.update(attempt=1, state="Running")
    refused = llama.refused("scale", "pytorchjob", "llama", "--replicas=9")
    assert "is invalid: spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: 9" in refused
    assert "9 is above the max of role worker (min 1, max 4, by spec.elasticPolicy), which has 2 now" in refused
    Job.objects.update(state="Dispatched")
    refused = llama.refused("patch", "pytorchjob", "llama", "--type=merge", "-p", WORKERS.format(3))
    assert "only a running job is resized, and it is Dispatched with 2 worker" in refused
    Job.objects.update(state="Running")
    both = json.dumps({"spec": {"elasticPolicy": {"maxReplicas": 99}, **json.loads(WORKERS.format(3))["spec"]}})
    assert "spec.elasticPolicy.maxReplicas" in llama.refused("patch", "pytorchjob", "llama", "--type=merge", "-p", both)


WORKERS = '{{"spec":{{"pytorchReplicaSpecs":{{"Worker":{{"replicas":{}}}}}}}}}'


def test_it_refuses_to_suspend_a_job_that_has_ended_as_invalid(llama):
    Job.objects.update(state="Succeeded", finished_at=timezone.now())
    refused = llama.refused(
        "patch", "pytorchjob", "llama", "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":false}}}'
    )
    assert "is invalid" in refused and "the job has ended (Succeeded)" in refused


def test_it_does_not_end_the_pods_of_somebody_who_asks_to_keep_them(llama):
    said = llama.refused("delete", "pytorchjob", "llama", "--cascade=orphan")
    assert "the pods of a fleet job do not outlive it" in said
    assert "llama" in llama.says("get", "pytorchjobs")
    for cascade in ("background", "foreground"):
        assert "deleted" in llama.says("delete", "pytorchjob", "llama", f"--cascade={cascade}", "--dry-run=server")
    assert "deleted" in llama.says("delete", "pytorchjob", "llama", "--cascade=foreground")
