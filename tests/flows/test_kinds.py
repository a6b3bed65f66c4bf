"""Every kind, from its shipped example: placed whole on one member, run by that member's operator, ended, removed."""

from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from fleet.models import Pod
from jobs.kinds import registry
from jobs.models import Work

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PODS = {
    "tfjob": Counter(["-chief-0", "-ps-0", "-worker-0", "-worker-1"]),
    "paddlejob": Counter(["-worker-0", "-worker-1"]),
    "xgboostjob": Counter(["-master-0", "-worker-0", "-worker-1"]),
    "jaxjob": Counter(["-worker-0", "-worker-1", "-worker-2"]),
    "job": Counter({"-*": 2}),
    "mpijob": Counter(["-launcher-*", "-worker-0", "-worker-1"]),
    "mpijob-v1": Counter(["-launcher", "-worker-0", "-worker-1"]),
    "trainingjob": Counter(["-launcher", "-worker-0", "-worker-1"]),
    "elasticjob": Counter(["elasticjob-*-dlrover-master-0", "-edljob-worker-0", "-edljob-worker-1"]),
    "rayjob": Counter({"-*-head-*": 1, "-*-gpus-worker-*": 2, "-*": 1}),
    "jobset": Counter({"-driver-0-0-*": 1, "-workers-?-?-*": 4}),
    "sparkapplication": Counter(["-driver", "-*-exec-1", "-*-exec-2"]),
    "trainjob": Counter({"-node-0-?-*": 3}),
    "volcanojob": Counter(["-ps-0", "-worker-0", "-worker-1"]),
}
"""The ends of the names of the pods that run, as the kind's own operator gives them; ``*`` is drawn by lot."""
BESIDE = [(EXAMPLES / f"{name}.yaml").read_text() for name in ("policy", "trainingruntime")]
NO_JOBS = ("policy", "trainingruntime")
"""Examples of what is no job."""


def test_every_example_runs_here():
    jobs = [path.stem for path in EXAMPLES.glob("*.yaml") if path.stem not in NO_JOBS]
    assert sorted(PODS) == sorted(jobs)


@pytest.mark.parametrize("example", PODS)
def test_it_runs_every_kind_from_its_example_to_its_end_and_removes_it(world, example):
    text = (EXAMPLES / f"{example}.yaml").read_text()
    manifest = yaml.safe_load(text)
    name, resource = manifest["metadata"]["name"], registry.kind_of(manifest["apiVersion"], manifest["kind"]).resource
    served = {f"{resource.plural}.{resource.group}": resource.version}
    world.member("north", 8, serves=served)
    world.apply(*BESIDE, text)
    job = world.expect(name, "Running", on="north")
    assert world.copies(resource.plural, resource.api_version) == {"north": [name]}
    ends = [pod["metadata"]["name"].removeprefix(name) for pod in world.pods("north")]
    assert (
        Counter(next((known for known in PODS[example] if fnmatch(end, known)), end) for end in ends) == PODS[example]
    )
    roles = set(Pod.objects.filter(job_uid=job.uid).values_list("role", flat=True))
    assert roles == {role["name"] for role in job.roles}
    world.expect(name, "Succeeded")
    world.delete(name)
    world.until(lambda: world.pods("north") == [] and not Work.objects.exists(), "nothing is left")


@pytest.mark.parametrize("example", [each for each in PODS if each != "mpijob-v1"])
def test_it_suspends_every_kind_in_its_member_and_runs_it_again_as_a_new_attempt(world, example):
    manifest = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    name = manifest["metadata"]["name"]
    world.member("north", 8, time_scale=1.0)
    world.apply(*BESIDE, yaml.safe_dump(manifest))
    world.expect(name, "Running")
    world.suspend(name)
    asked = ("Running", "Pending")
    world.until(lambda: not [p for p in world.pods("north") if p["status"]["phase"] in asked], "no pods")
    assert world.job(name).state == "Suspended"
    world.resume(name)
    assert world.expect(name, "Running").attempt == 2
