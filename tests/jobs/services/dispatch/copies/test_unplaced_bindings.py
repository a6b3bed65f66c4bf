"""The binding of a job that left its cluster stays as it was: its nodes and GPUs are not the job's any more."""

import pytest

from jobs.api.placement import placement_of
from jobs.models import Binding, Job
from jobs.services.dispatch.copies import gpu_sets
from tests.jobs.services import lost_cluster
from tests.support import books

pytestmark = pytest.mark.django_db
GPUS = {"node": [0, 1]}


@pytest.fixture
def llama() -> Job:
    job = lost_cluster.running()
    placement = {"nodes": {"worker": [["node", 2]]}, "shared": {}, "switches": 1, "crossings": 0, "met": True}
    Binding.objects.update(placement={**placement, "gpus": GPUS})
    return job


@pytest.mark.parametrize(
    ("change", "is_there"),
    [
        ({}, True),
        ({"state": "Queued"}, False),
        ({"state": "Succeeded"}, False),
        ({"cluster": None}, False),
        ({"cluster": "south"}, False),
    ],
)
def test_its_gpus_are_free_for_others(llama, change, is_there):
    if change.get("cluster"):
        change = {"cluster": books.a_cluster(change["cluster"])}
    Job.objects.update(**change)
    chosen = list(gpu_sets._chosen_for_others(Binding.objects.get().cluster, 0))
    assert chosen == (list(GPUS.items()) if is_there else [])


@pytest.mark.parametrize(("change", "is_shown"), [({}, True), ({"cluster": None}, False), ({"attempt": 2}, False)])
def test_its_placement_is_not_shown_as_the_jobs(llama, change, is_shown):
    Job.objects.update(**change)
    shown = placement_of(books.job("llama"))
    assert (shown is not None) is is_shown
    if shown is not None:
        assert shown["gpus"] == GPUS
