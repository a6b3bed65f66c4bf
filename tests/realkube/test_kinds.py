"""Kinds on a real kube-apiserver: what it prunes, defaults and refuses, the fleet must not need.

No operator of these kinds runs there: the simulator's operators are clients of the real API server, in their place.
"""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from fleet.models import Hold
from jobs.kinds import registry
from jobs.models import Attempt, Work
from tests.realkube.builders import is_kept
from tests.realkube.control_plane import needs_realkube
from tests.support import laws

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
POLICY = (EXAMPLES / "policy.yaml").read_text()
KINDS = {
    "paddlejob": Counter(["-worker-0", "-worker-1"]),
    "xgboostjob": Counter(["-master-0", "-worker-0", "-worker-1"]),
    "jaxjob": Counter(["-worker-0", "-worker-1", "-worker-2"]),
}
"""By example: the ends of the names of its pods."""


@pytest.mark.parametrize("example", KINDS)
def test_it_runs_a_kind_to_its_end_and_removes_it(real, example):
    north = real.join("north")[0]
    manifest = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    kind, name = registry.kind_of(manifest["apiVersion"], manifest["kind"]), manifest["metadata"]["name"]
    real.apply(POLICY, yaml.safe_dump(manifest))
    job = real.world.expect(name, "Running", on="north")
    assert is_kept(real.copy("north", name, kind.resource)["spec"], manifest["spec"])
    assert Counter(pod["metadata"]["name"].removeprefix(name) for pod in real.pods("north")) == KINDS[example]
    assert sum(role["replicas"] for role in job.roles) == KINDS[example].total()
    real.world.until(lambda: not Hold.objects.filter(released_at__isnull=True).exists(), "the pods are counted")
    job = real.world.expect(name, "Succeeded")
    counted = {role: count["succeeded"] for role, count in job.status["replicaStatuses"].items()}
    assert sum(counted.values()) >= 1
    assert {c["type"] for c in job.status["conditions"]} >= {"Created", "Running", "Succeeded"}
    laws.terminal_holds_nothing()
    real.world.delete(name)
    real.world.until(lambda: not real.pods("north") and not Work.objects.exists(), "nothing is left")
    assert not north.client.list(kind.resource.path(real.namespace))["items"]


@pytest.mark.parametrize("example", KINDS)
def test_it_suspends_a_kind_and_runs_it_again(real, example):
    real.join("north")
    manifest = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    for role in next(iter(manifest["spec"].values())).values():
        role["template"]["metadata"]["annotations"]["convoy.dev/duration"] = "100h"
    name = manifest["metadata"]["name"]
    real.apply(POLICY, yaml.safe_dump(manifest))
    real.world.expect(name, "Running")
    real.world.suspend(name)
    real.world.until(lambda: not real.pods("north"), "no pod runs")
    real.world.expect(name, "Suspended")
    real.world.resume(name)
    assert real.world.expect(name, "Running").attempt == 2
    assert Attempt.objects.filter(job__name=name).count() == 2
