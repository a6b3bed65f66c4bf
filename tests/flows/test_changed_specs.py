"""A suspended job is given another size and image, and runs so when it is resumed."""

import pytest

from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_suspended_job_runs_as_it_was_changed(world):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama", workers=1))
    world.expect("llama", "Running")
    world.suspend("llama")
    world.until(lambda: not world.pods("north"), "the pods of the suspended job are gone")
    world.until(lambda: world.job("llama").charge is None, "nothing is charged for it")
    changed = pytorch_job("llama", workers=3).replace("example.com/train", "example.com/train:v2")
    world.apply(changed)
    job = world.expect("llama", "Running")
    pods = world.pods("north")
    assert job.attempt == 2 and len(pods) == 4
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"example.com/train:v2"}
