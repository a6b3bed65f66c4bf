"""A MIG slice is a resource of its own: it is limited by its name, and never taken for a whole GPU."""

import pytest

from jobs.models import Job
from tests.support import books
from tests.support.quotas import GPU, PLENTY, apply_tree, leaf
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


def asking(name: str, resource: str, amount: int = 1) -> str:
    return pytorch_job(name, workers=0, gpus=amount).replace(GPU, resource)


@pytest.fixture
def sliced(db):
    """A node with whole GPUs, and slices of two profiles."""
    cluster = books.a_cluster(gpus=2)
    node = cluster.nodes.get()
    cluster.nodes.update(allocatable={**node.allocatable, SMALL: 7, LARGE: 1})


def codes() -> dict[str, str]:
    return {job.name: (job.reason or {}).get("code", "") if job.state == "Queued" else "" for job in Job.objects.all()}


def test_a_quota_limits_each_profile_by_its_name(sliced):
    plenty = {**PLENTY, SMALL: 100, LARGE: 100}
    apply_tree(leaf("team", "default", max={SMALL: 2, GPU: 1}), total=plenty)
    books.apply(asking("two", SMALL, 2), asking("other", LARGE), asking("whole", GPU))
    books.cycle()
    books.apply(asking("third", SMALL))
    books.cycle()
    assert codes() == {"two": "", "third": "QuotaExceeded", "other": "", "whole": ""}
    assert books.job("third").reason["quota"]["resource"] == SMALL
    assert [books.used("root/team")[each] for each in (SMALL, LARGE, GPU)] == [2, 1, 1]


def test_a_slice_is_placed_on_slices_alone_and_counts_as_one_device(sliced):
    books.apply(asking("large", LARGE), asking("next", LARGE), asking("whole", GPU, 2))
    books.cycle()
    assert codes() == {"large": "", "next": "NoClusterFits", "whole": ""}
    [north] = books.job("next").reason["clusters"]
    assert LARGE in north["message"] and (books.job("large").gpus, books.job("whole").gpus) == (1, 2)
