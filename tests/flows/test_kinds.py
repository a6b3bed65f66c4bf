"""Every kind, from its shipped example: placed whole on one member, run by that member's operator, ended, removed."""

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
    "mpijob": ["-launcher-*", "-worker-0", "-worker-1"],
    "mpijob-v1": ["-launcher", "-worker-0", "-worker-1"],
    "trainingjob": ["-launcher", "-worker-0", "-worker-1"],
    "elasticjob": ["-edljob-worker-0", "-edljob-worker-1", "elasticjob-*-dlrover-master-0"],
    "tfjob": ["-chief-0", "-ps-0", "-worker-0", "-worker-1"],
}
"""The ends of the names of the pods that run, as the kind's own operator gives them; ``*`` is drawn by lot."""


@pytest.mark.parametrize("example", PODS)
def test_it_runs_every_kind_from_its_example_to_its_end_and_removes_it(world, example):
    text = (EXAMPLES / f"{example}.yaml").read_text()
    manifest = yaml.safe_load(text)
    name, resource = manifest["metadata"]["name"], registry.of(manifest["apiVersion"], manifest["kind"]).resource
    served = {f"{resource.plural}.{resource.group}": resource.version}
    world.member("north", 8, serves=served)
    world.apply((EXAMPLES / "policy.yaml").read_text(), text)
    job = world.expect(name, "Running", on="north")
    assert world.copies(resource.plural, resource.api_version) == {"north": [name]}
    ends = sorted(pod["metadata"]["name"].removeprefix(name) for pod in world.pods("north"))
    assert len(ends) == len(PODS[example]) and all(map(fnmatch, ends, PODS[example])), ends
    roles = set(Pod.objects.filter(job_uid=job.uid).values_list("role", flat=True))
    assert roles == {role["name"] for role in job.roles}
    world.expect(name, "Succeeded")
    world.delete(name)
    world.until(lambda: world.pods("north") == [] and not Work.objects.exists(), "nothing is left")
