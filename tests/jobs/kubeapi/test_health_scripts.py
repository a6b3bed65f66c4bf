"""Argo CD's checks of health are scripts in Lua: ours in `deploy/gitops`, and its own where a folder has them. Flux's are
expressions in CEL. They read jobs as the fleet serves them, in every state.

``ARGOCD_CUSTOMIZATIONS`` names the folder `resource_customizations` of a release of Argo CD. Its interpreter is one of Lua 5.1,
and so is the one of these tests; Argo CD itself does not run here.
"""

import fnmatch
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cel
import pytest
import yaml
from django.utils import timezone
from lupa.lua51 import LuaRuntime

from deploy.bootstrap.home import ROOT
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from jobs.core.life.jobs import JobState
from jobs.kinds import registry
from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.health_rules import argo_spark, flux_generic
from tests.support.kubectl import client_of, served

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = ROOT / "docs" / "examples"
RUNTIME = (EXAMPLES / "trainingruntime.yaml").read_text()
FILES = [*EXAMPLES.glob("*.yaml"), ROOT / "deploy" / "demo" / "pytorchjob.yaml"]
DOCUMENTS = [document for file in FILES for document in yaml.safe_load_all(file.read_text())]
KINDS = [kind.resource for kind in registry.everything()]
PUBLISHED = os.environ.get("ARGOCD_CUSTOMIZATIONS", "")
OWN = yaml.safe_load((ROOT / "deploy" / "gitops" / "argocd-cm.yaml").read_text())["data"]["resource.customizations"]
SCRIPTS = {pattern: entry["health.lua"] for pattern, entry in yaml.safe_load(OWN).items()}
EXPRESSIONS = {
    (entry["apiVersion"], entry["kind"]): entry
    for entry in yaml.safe_load((ROOT / "deploy" / "gitops" / "flux-kustomization.yaml").read_text())["spec"][
        "healthCheckExprs"
    ]
}
BY_ARGO_CD = {("batch", "Job"), ("sparkoperator.k8s.io", "SparkApplication")}
FORMER = {"conditions": [{"type": "Failed", "status": "True"}, {"type": "Running", "status": "False"}]}
"""What the member said of an attempt that is over."""
EXPECTED = dict.fromkeys(JobState, "Progressing") | {
    JobState.SUSPENDED: "Suspended",
    JobState.SUCCEEDED: "Healthy",
    JobState.FAILED: "Degraded",
}


def health(script: str, obj: dict[str, Any]) -> tuple[str, str]:
    """Status and message. A script that fails would make an application's health unknown; here it raises."""
    lua = LuaRuntime(register_eval=False)
    for library in ("io", "os", "package", "require", "string", "table", "math", "debug"):
        lua.globals()[library] = None
    lua.globals().obj = lua.table_from(obj, recursive=True)
    answer = lua.execute(script)
    return answer.status, answer.message


BY_FLUX = {"Progressing": "InProgress", "Suspended": "Current", "Healthy": "Current", "Degraded": "Failed"}
"""What Flux makes of a job, by what Argo CD does."""


def flux_health(obj: dict[str, Any]) -> str:
    """As Flux evaluates them: the first that is true, with the fields of the object as variables."""
    entry = EXPRESSIONS[obj["apiVersion"], obj["kind"]]
    return next((word for word in ("failed", "current") if cel.evaluate(entry[word], obj)), "inProgress")


def script_of(resource: Resource) -> str:
    scripts = [
        text for pattern, text in SCRIPTS.items() if fnmatch.fnmatch(f"{resource.group}/{resource.kind}", pattern)
    ]
    assert len(scripts) == 1, resource
    return scripts[0]


@pytest.fixture(scope="module")
def client(django_db_blocker, tmp_path_factory):
    """Of user ada, whom each test has made anew."""
    with served(tmp_path_factory.mktemp("door")) as door:
        yield lambda: client_of(door.as_user("ada").file)


def submitted(resource: Resource) -> Job:
    [job] = [each for each in DOCUMENTS if (each["apiVersion"], each["kind"]) == (resource.api_version, resource.kind)]
    text = "\n---\n".join((RUNTIME, yaml.safe_dump(job)))
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    return Job.objects.get()


def in_every_state(resource: Resource, client: MemberClient, read: Callable[[dict[str, Any]], str]) -> dict[str, str]:
    job = submitted(resource)
    answers = {}
    for state in JobState:
        ended = timezone.now() if state in (JobState.SUCCEEDED, JobState.FAILED) else None
        Job.objects.update(state=state, suspended=state == JobState.SUSPENDED, finished_at=ended, status=FORMER)
        answers[state] = read(client.get(resource.path(job.namespace, job.name)))
    return answers


def test_the_shipped_scripts_are_one():
    assert len({*SCRIPTS.values()}) == 1


@pytest.mark.parametrize(
    "resource",
    [each for each in KINDS if (each.group, each.kind) not in BY_ARGO_CD],
    ids=lambda each: f"{each.kind}.{each.group}.{each.version}",
)
def test_the_shipped_script_reads_every_kind_in_every_state_and_flux_waits_by_its_expressions(admin, client, resource):
    script, by_flux, generic = script_of(resource), [], set()

    def read(obj):
        generic.add(flux_generic(obj))
        by_flux.append(flux_health(obj))
        return health(script, obj)[0]

    assert in_every_state(resource, client(), read) == EXPECTED
    assert [word[0].upper() + word[1:] for word in by_flux] == [BY_FLUX[EXPECTED[state]] for state in JobState]
    assert generic == {"Current"}


def test_the_expressions_of_flux_are_there_for_every_kind_and_are_one(admin, client):
    spark = next(each for each in KINDS if each.kind == "SparkApplication")
    by_flux = in_every_state(spark, client(), flux_health)
    assert {word[0].upper() + word[1:] for word in by_flux.values()} == {*BY_FLUX.values()}
    own = {(each.api_version, each.kind) for each in KINDS} - {("batch/v1", "Job")}
    assert EXPRESSIONS.keys() == own
    assert len({(entry["failed"], entry["current"]) for entry in EXPRESSIONS.values()}) == 1


def test_the_shipped_script_gives_the_reason_of_the_fleet(admin, client):
    resource = next(each for each in KINDS if each.kind == "RayJob")
    job, script = submitted(resource), script_of(resource)
    path = resource.path(job.namespace, job.name)
    Job.objects.update(reason={"code": "QuotaExceeded", "message": "gpu: 8 of 8 used"})
    assert health(script, client().get(path)) == ("Progressing", "Queued: gpu: 8 of 8 used")
    Job.objects.update(state="Failed", reason={"code": "Failed", "message": "out of memory"})
    assert health(script, client().get(path)) == ("Degraded", "out of memory")


def test_the_shipped_script_reads_a_job_outside_the_fleet():
    script = script_of(KINDS[0])
    assert health(script, {"metadata": {"name": "a"}})[0] == "Progressing"
    for word, expected in (("Running", "Progressing"), ("Succeeded", "Healthy"), ("Failed", "Degraded")):
        job = {"status": {"conditions": [{"type": "Created", "status": "True"}, {"type": word, "status": "True"}]}}
        assert health(script, job)[0] == expected


@pytest.mark.skipif(not PUBLISHED, reason="ARGOCD_CUSTOMIZATIONS does not name the resource_customizations of Argo CD")
def test_the_published_script_of_spark_applications_reads_every_state_as_it_is_restated(admin, client):
    script = (Path(PUBLISHED) / "sparkoperator.k8s.io" / "SparkApplication" / "health.lua").read_text()
    resource = next(each for each in KINDS if each.kind == "SparkApplication")
    agreed = []

    def read(obj):
        answer = health(script, obj)[0]
        agreed.append(answer == argo_spark(obj))
        return answer

    assert in_every_state(resource, client(), read) == {**EXPECTED, JobState.SUSPENDED: "Progressing"}
    assert all(agreed), "the restated rule is the published one"
    running = {"applicationState": {"state": "RUNNING"}, "executorState": {"a-1": "RUNNING", "a-2": "RUNNING"}}
    Job.objects.update(state="Running", finished_at=None, status=running)
    job = Job.objects.get()
    assert health(script, client().get(resource.path(job.namespace, job.name)))[0] == "Healthy"


@pytest.mark.skipif(not PUBLISHED, reason="ARGOCD_CUSTOMIZATIONS does not name the resource_customizations of Argo CD")
def test_argo_cd_publishes_no_script_of_the_kinds_that_have_one_here():
    own = [resource for resource in KINDS if (resource.group, resource.kind) not in BY_ARGO_CD]
    assert [each for each in own if (Path(PUBLISHED) / each.group / each.kind / "health.lua").exists()] == []
