"""What a tenant writes in its own namespace reaches no job of another one: neither its pods nor the answers to its reports."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fleet.core.members import marks
from fleet.kube.resources import PODS
from fleet.member.watching import Item, Listed
from jobs.runtime import notices as notice
from jobs.runtime.notices import JobRecord, Notice, PodRecord, Scope
from supervisor.core import facts
from supervisor.store import Store
from supervisor.supervisor import Supervisor
from tests.supervisor.reporting import endpoint, reporting_job, steps
from tests.supervisor.world import START, PlayedMember, World, deliver

MARKS = {marks.JOB_UID: "fleet-1", marks.ATTEMPT: "1"}
ASKED = Notice("n1-1", "reclaim", "n1", START, START + 60, Scope.JOB)


def pods(store: Store, world: World, **namespaces: str) -> None:
    """Delivers the pods of the world, each by its name in that namespace."""
    items = []
    for name, namespace in namespaces.items():
        meta = world.pods[name]["metadata"]
        meta["namespace"] = namespace
        items.append(Item((namespace, name), facts.read(world.pods[name])))
    deliver(store, Listed(PODS, items))


def asked(pod: Any) -> Any:
    pod["metadata"]["annotations"][notice.NOTICE] = ASKED.written(pod["metadata"]["uid"])
    return pod


@pytest.mark.parametrize(("namespace", "stop"), [("default", True), ("hostile", False)])
def test_a_pod_that_is_labelled_as_that_of_a_job_elsewhere_does_not_stop_it(tmp_path: Path, namespace: str, stop: bool):
    async def story() -> None:
        world = World()
        reporting_job(world)
        world.jobs["bert"]["metadata"]["labels"] = MARKS
        asked(world.pod("w", "n1"))["metadata"]["labels"] |= MARKS
        async with endpoint(tmp_path, world) as served:
            pods(served.store, world, w=namespace)
            assert await served.post(steps(1)) == (200, {"stop": stop})

    asyncio.run(story())


def test_pods_are_of_one_job_in_one_namespace_only():
    world, store = World(), Store()
    for name in ("ours", "theirs", "owned"):
        world.pod(name, "n1")
    world.pods["ours"]["metadata"]["labels"] |= MARKS
    world.pods["theirs"]["metadata"]["labels"] |= MARKS
    pods(store, world, ours="default", theirs="hostile", owned="hostile")
    assert sorted(len(store.pods_of(key)) for key in store.jobs()) == [1, 1, 1]


def test_a_record_that_names_pods_of_another_namespace_is_not_about_them():
    async def story() -> None:
        world, store = World(), Store()
        victim = world.pod("w", "n1")
        pods(store, world, w="default")
        hostile = world.job(workers=1)["metadata"]
        hostile["namespace"], hostile["uid"] = "hostile", "job-2"
        record = {"n1-1": JobRecord(ASKED, {"w": PodRecord(victim["metadata"]["uid"])})}
        hostile["annotations"] = {notice.NOTICES: notice.written(record, "job-2")}
        supervisor = Supervisor(PlayedMember(world), store, world.tell, clock=lambda: START)  # type: ignore[arg-type]
        await supervisor.recover()
        assert supervisor._jobs and not supervisor._jobs.keys() & set(store.jobs())

    asyncio.run(story())
