"""A pod hears its notice as soon as that stands on it; what only has to be noted waits until the pods of other jobs have."""

import asyncio

from jobs.runtime import notices as notice
from supervisor.store import Store
from supervisor.supervisor import Supervisor
from tests.supervisor.world import PlayedMember, World, _see


class Watched(PlayedMember):
    """Notes in which order notices, words and answers come."""

    def __init__(self, world: World, order: list[str]) -> None:
        super().__init__(world)
        self.order = order

    async def annotate_pod(self, pod, notes, *, version=""):
        await asyncio.sleep(0)
        self.order.append(f"{'notice' if notice.NOTICE in notes else 'heard'} {pod.name}")
        return await super().annotate_pod(pod, notes, version=version)


def looked_at(world: World) -> list[str]:
    """What happens in one look at the job."""
    order: list[str] = []

    async def tell(address: str) -> bool:
        order.append(f"word {address}")
        return await world.tell(address)

    async def look() -> None:
        store = Store()
        supervisor = Supervisor(Watched(world, order), store, tell, clock=lambda: world.now)
        _see(world, store)
        for job in set(store.jobs()):
            await supervisor.look(job)

    asyncio.run(look())
    return order


def shrinking(workers: int) -> World:
    world = World()
    world.job(workers=workers, least=1)
    for index in range(workers):
        world.pod(f"w-{index}", f"n{min(index, 1)}")
    world.reclaim("n1", 30)
    return world


def test_each_pod_hears_once_right_after_its_own_notice_and_before_any_answer_is_noted() -> None:
    order = looked_at(shrinking(5))
    assert sorted(order) == sorted(f"{word} w-{index}" for index in range(1, 5) for word in ("notice", "word", "heard"))
    assert all(order.index(f"notice w-{index}") < order.index(f"word w-{index}") for index in range(1, 5))
    first_noted = min(index for index, step in enumerate(order) if step.startswith("heard"))
    assert all(index < first_noted for index, step in enumerate(order) if not step.startswith("heard"))


def test_a_deaf_pod_holds_up_no_other() -> None:
    world = shrinking(4)
    world.deaf = {"w-1"}
    order = looked_at(world)
    assert {step for step in order if step.startswith("heard")} == {"heard w-2", "heard w-3"}
    assert order.count("word w-1") >= 2, "it is tried again"
