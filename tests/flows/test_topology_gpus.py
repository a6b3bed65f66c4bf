"""GPUs chosen by their links when several gangs come at once, and when a worker is started over in the middle."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from fleet.services.members import member_clients
from jobs.models import Binding
from jobs.services.dispatch.copies import gpu_sets
from tests.acceptance.builders import POLICY, by_links, gpus_of, linked, mpi_job

pytestmark = pytest.mark.django_db(transaction=True)
NODE = "north-pool0-0"


def decided(name: str) -> list[int]:
    return Binding.objects.get(job__name=name).placement["gpus"][NODE]


def test_two_gangs_at_once_get_a_quad_each(world):
    linked(world, "north", 8)
    world.apply(POLICY, by_links(mpi_job("one", workers=4)), by_links(mpi_job("two", workers=4)))
    for name in ("one", "two"):
        world.expect(name, "Running")
        world.until(lambda name=name: all(gpus_of(world, "north", name)), "every worker has its GPU")
        assert sorted(map(int, gpus_of(world, "north", name))) == decided(name)
    assert sorted([decided("one"), decided("two")]) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_many_who_decide_at_once_decide_alike_and_once(world):
    linked(world, "north", 8)
    world.apply(POLICY, by_links(mpi_job("one", workers=4)))
    job = world.expect("one", "Running")
    Binding.objects.filter(job=job).update(placement={"nodes": {"worker": [[NODE, 4]]}})

    def settle(_: int) -> dict[str, list[int]]:
        try:
            return gpu_sets.decide_gpu_sets(member_clients.client(job.cluster), job, job.attempt, job.cluster)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(settle, range(4))) == [{NODE: [0, 1, 2, 3]}] * 4


def test_what_a_gang_had_is_free_again_when_it_has_ended(world):
    linked(world, "north", 8)
    world.apply(POLICY, by_links(mpi_job("one", workers=4, duration="20s")))
    world.expect("one", "Succeeded")
    world.apply(by_links(mpi_job("two", workers=4)))
    world.expect("two", "Running")
    assert decided("two") == decided("one") == [0, 1, 2, 3]
