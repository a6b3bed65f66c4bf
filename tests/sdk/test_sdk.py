"""The Python SDK against the product's web process: the page of the documentation as it stands, and what a user meets."""

import asyncio
import re
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from convoy import AsyncFleet, ConvoyError, Fleet, JobFailed, NotFound, Refused, TimedOut, Unreachable
from convoy.flows import content_of
from fleet.models import Grant
from fleet.services.authorization import access
from frontend import sdk_types
from tests.support.fixtures import unswept, worker, world
from tests.support.people import person
from tests.support.web import served
from tests.support.world import POLICY, pytorch_job

__all__ = ["unswept", "worker", "world"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def door(world, monkeypatch):
    """The world's web process, as the environment names it."""
    user = get_user_model().objects.create_superuser("admin", password="a long password")
    token = access.mint(user, "test", life=None, now=timezone.now())[1]
    with served() as port:
        monkeypatch.setenv("CONVOY_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("CONVOY_TOKEN", token)
        monkeypatch.chdir(ROOT)
        yield


@pytest.fixture
def fleet(door):
    with Fleet() as fleet:
        yield fleet


def test_every_command_of_the_page_runs_as_it_is_written(world, door, capsys):
    # The page suspends its job, which would run for 400 s there.
    world.member("north", 8, time_scale=0.05, start_delay_s=0.05)
    world.apply((ROOT / "docs" / "examples" / "policy.yaml").read_text())
    known: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(block, "docs/python.md", "exec"), known)
    printed = capsys.readouterr().out
    # Printed as it was when the server had answered: by then it may be placed, or run.
    assert re.match(r"<JAXJob default/mnist-jax is (Queued|Placed|Running)( on north)?: .+>\n", printed)
    assert "north" in printed and printed.rstrip().endswith("mnist-jax")


def test_a_job_is_submitted_from_text_and_dictionaries_and_again_without_a_change(fleet):
    job = fleet.submit(pytorch_job("a"))
    again = fleet.submit(job.value["manifest"])
    assert (again.uid, again.value["generation"]) == (job.uid, job.value["generation"]) and job.state == "Queued"
    assert repr(job).startswith("<PyTorchJob default/a is Queued")
    assert [each.name for each in fleet.jobs("default")] == ["a"] and fleet.jobs("vision") == []


def test_a_wait_ends_with_the_job_or_with_its_time(world, fleet, monkeypatch):
    monkeypatch.setattr("convoy.flows.POLL_S", 0.05)
    job = fleet.submit(pytorch_job("a"))
    with pytest.raises(TimedOut, match=r"PyTorchJob default/a is Queued.*not Running after 0\.1 s"):
        job.wait("Running", timeout_s=0.1)
    world.member("north", 8)
    world.apply(POLICY)
    assert job.wait("Running").cluster == "north"
    with pytest.raises(JobFailed, match="is Failed"):
        _fail(job).wait()


def _fail(job):
    from jobs.models import Job

    Job.objects.filter(uid=job.uid).update(state="Failed")
    return job


def test_errors_say_what_to_do_next(fleet, monkeypatch):
    with pytest.raises(NotFound, match="no job 'nobody' in namespace default"):
        fleet.job("nobody")
    with pytest.raises(Refused) as refused:
        fleet.submit(pytorch_job("a").replace("replicas: 1", "replicas: x"))
    assert refused.value.status in (400, 422) and refused.value.faults
    with pytest.raises(Unreachable, match="cannot reach"):
        Fleet("http://127.0.0.1:1", "x").jobs()
    otto = access.mint(person("otto", (Grant.Role.VIEWER, "vision")), "t", life=None, now=timezone.now())[1]
    with pytest.raises(Refused, match="role"):
        Fleet(token=otto).submit(pytorch_job("a"))


def test_what_cannot_be_submitted_is_named_with_what_to_give_in_its_place():
    unreadable = [(".", "'.' is a directory"), ("nowhere.yaml", "cannot read 'nowhere.yaml'"), ("a\0b", "null byte")]
    for manifests, says in [*((empty, "manifests is empty") for empty in ("", " ", " \n", b"", {}, [])), *unreadable]:
        with pytest.raises(ConvoyError, match=says) as refused:
            content_of(manifests)
        assert "give YAML, the path of a file, or dictionaries" in str(refused.value)


def test_what_a_tenant_wrote_is_escaped_in_a_notebook(fleet):
    job = fleet.submit(pytorch_job("a"))
    job.value["reason"] = {"code": "x", "message": "<script>alert(1)</script>"}
    assert "<script>" not in job._repr_html_() and "&lt;script&gt;" in job._repr_html_()
    fleet_jobs = fleet.jobs()
    fleet_jobs[0].value["reason"] = job.value["reason"]
    assert "<script>" not in fleet_jobs._repr_html_() and "PyTorchJob" in fleet_jobs._repr_html_()
    assert "<table>" in job.explain()._repr_html_() and "a is Queued" in str(job.explain())


def test_the_asynchronous_face_does_the_same(door):
    async def use() -> tuple[str, list[str], str]:
        async with AsyncFleet() as fleet:
            job = await fleet.submit(pytorch_job("a"))
            names = [each.name for each in await fleet.jobs("default")]
            with pytest.raises(NotFound, match="has no"):
                [line async for line in job.logs()]
            return (await job.suspend()).state, names, str(await job.explain())

    state, names, explanation = asyncio.run(use())
    assert state == "Suspended" and names == ["a"] and explanation.startswith("a is Suspended")


def test_both_faces_have_the_same_words():
    def words(cls):
        return {name for name in vars(cls) if not name.startswith("_")}

    from convoy import AsyncJob, Job

    assert words(Fleet) == words(AsyncFleet) and words(Job) == words(AsyncJob)


def test_its_types_are_those_of_the_rest_api():
    import json

    assert sdk_types.text(json.loads(sdk_types.DOCUMENT.read_text())) == sdk_types.TARGET.read_text()
