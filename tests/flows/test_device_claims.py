"""Jobs whose pods have their GPUs by claims, in a cluster that offers them by no resource."""

import pytest
import yaml

from fleet.kube.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from fleet.models import Hold, Node
from tests.support.device_claims import CLASS, GPUS, job, template
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_gangs_take_turns_on_the_devices_of_a_cluster(world):
    world.member("north", 8, gpu_class=CLASS, time_scale=1.0, start_delay_s=0.1)
    client = world.clients["north"]
    first, second = (yaml.safe_dump(job(name, workers=2)) for name in ("first", "second"))
    world.apply(POLICY, yaml.safe_dump(template()), first)
    world.expect("first", "Running", on="north")
    world.until(lambda: not Hold.objects.filter(released_at=None).exists(), "its pods count by themselves")
    assert sum(row.requested.get(GPUS, 0) for row in Node.objects.all()) == 6
    claims = client.list(RESOURCE_CLAIMS.path("default"))["items"]
    given = [each["device"] for claim in claims for each in claim["status"]["allocation"]["devices"]["results"]]
    assert len(claims) == 3 and len(given) == len(set(given)) == 6
    world.apply(second)
    assert world.expect("second", "Queued").gpus == 6
    world.delete("first")
    world.expect("second", "Running", on="north")
    world.delete("second")
    world.until(lambda: client.list(RESOURCE_CLAIM_TEMPLATES.path("default"))["items"] == [], "no job needs it")
    world.until(lambda: client.list(RESOURCE_CLAIMS.path("default"))["items"] == [], "the claims went with their pods")
