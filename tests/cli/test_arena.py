"""What ``arena`` prints, character by character: the documents' own outputs, from a server that has what they show."""

import json
import re
from dataclasses import replace

import pytest
import yaml

from tests.cli.builders import JOB_ID, ago, job
from tests.support import transcripts
from tests.support.transcripts import Step

STEPS = transcripts.read("gpu_topology")
PAGES = [step for step in STEPS if step.line.startswith("arena get")]
LOGS = [step for step in STEPS if step.line.startswith("arena logs")]
SUBMITTED = {"results": [{"kind": "MPIJob", "namespace": "default", "name": "x", "action": "created", "warnings": []}]}


def in_minutes(page: Step) -> Step:
    """The same page of older pods: the seconds of the document would pass while a command runs."""
    return replace(page, printed=re.sub(r"\b(\d+)s\b", r"\1m", page.printed))


def served_as_shown(server, page: Step) -> None:
    """A server with the job of a printed page."""
    name = page.words[1]
    rows = [line.split() for line in page.printed.splitlines() if line.startswith(f"  {name}")]
    pods = [
        {"name": pod, "phase": phase, "created_at": ago(int(age[:-1]) * 60 + 0.2), "node": node, "attempt": 1,
         "role": "launcher" if chief == "true" else "worker", "index": 0 if chief == "true" else int(pod[-1]),
         "cluster": "shanghai"}
        for pod, phase, age, chief, _, node in rows
    ]  # fmt: skip
    asked = {"launcher": ({"cpu": 1000}, 0), "worker": ({"aliyun.com/gpu": 1}, 1)}
    roles = [{"name": role, "replicas": 1, "request": pod, "gpus": gpus} for role, (pod, gpus) in asked.items()]
    item = job(
        name, kind="MPIJob", api_version="kubeflow.org/v2beta1", roles=roles, gpus=4, started_at=pods[0]["created_at"]
    )
    server.page("jobs/", item)
    server.on(f"jobs/{JOB_ID}/", item)
    server.page(f"jobs/{JOB_ID}/pods/", *reversed(pods))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.words[1])
def test_it_shows_a_job_as_the_document_does(server, convoy, page):
    page = in_minutes(page)
    served_as_shown(server, page)
    assert convoy(*page.words).out == page.printed


def test_it_shows_a_job_by_its_name_alone(server, convoy):
    page = in_minutes(PAGES[0])
    served_as_shown(server, page)
    assert convoy("get", page.words[1]).out == page.printed


@pytest.mark.parametrize("step", LOGS, ids=lambda step: step.words[-1])
def test_it_prints_a_log_as_the_document_does(server, convoy, step):
    server.page("jobs/", job(step.words[-1]))
    server.on(f"jobs/{JOB_ID}/logs/", step.printed.encode())
    assert convoy(*step.words).out == step.printed


def test_it_submits_an_elastic_job_and_prints_what_the_document_does(server, convoy):
    [submit, _, get] = transcripts.read("elastic_training")
    server.on("apply", SUBMITTED, method="POST")
    server.page("jobs/")
    server.page("dependents/")
    said = convoy(*submit.words)
    assert said.code == 0, said.err
    expected = submit.printed.replace("INFO[0003]", said.out[said.out.index("INFO[") :][:10]).replace(
        "`arena ", "`convoy "
    )
    assert said.out == expected and get.line.replace("arena", "convoy") in said.out
    secret, manifest = yaml.safe_load_all(server.sent("POST").body)
    assert secret["metadata"] == {"name": "fine-tuning-elastic", "namespace": "default"}
    assert set(secret["data"]) == {"config", "id_rsa", "id_rsa.pub"}
    launcher, worker = (manifest["spec"]["etReplicaSpecs"][role] for role in ("launcher", "worker"))
    [container] = launcher["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c", submit.words[-1]]
    assert "-np $((${workers}*${gpus})) --min-np" in submit.words[-1]
    env = {each["name"]: each["value"] for each in container["env"]}
    assert env == {"workers": "8", "gpus": "1", "minWorkers": "1", "maxWorkers": "128"}
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "16Gi"}
    assert launcher["template"]["spec"]["nodeSelector"] == {"instance_type": "spot-launcher"}
    assert launcher["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert (worker["replicas"], worker["minReplicas"], worker["maxReplicas"]) == (8, 1, 128)
    assert worker["restartPolicy"] == "Always" and manifest["spec"]["restartPolicy"] == "OnFailure"
    assert manifest["spec"]["backoffLimit"] == 3
    [container] = worker["template"]["spec"]["containers"]
    assert "command" not in container and container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    notes = manifest["metadata"]["annotations"]
    assert notes["job-supervisor.kube-ai.io/spot-instance"] == "true"
    assert notes["job-supervisor.kube-ai.io/max-wait-time"] == "600"
    assert "the elastic-job-supervisor of the member acts on --spot-instance" in said.err


@pytest.mark.parametrize("kind", ["etjob", "mpijob", "pytorchjob", "tfjob"])
def test_a_value_cannot_become_another_field_of_the_manifest(server, convoy, kind):
    server.page("clusters/")
    nasty = "x\n  hostPID: true\n- {a: b} # ${HOME} {{ .Values }} & *anchor !!python/object"
    said = convoy(
        "submit", kind, "--dry-run", "--name=a", f"--image={nasty}", f"--env=A={nasty}", f"--label=b={nasty}", nasty
    )
    manifest = yaml.safe_load(said.out)
    assert manifest["metadata"]["labels"] == {"b": nasty}
    assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"} and "'hostPID'" not in str(manifest)
    assert json.dumps(manifest).count(json.dumps(nasty)) >= 4
