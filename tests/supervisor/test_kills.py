"""The supervisor is killed at every one of its requests, before and after it takes effect; `tests.supervisor.world` judges."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from jobs.runtime import notices as notice
from jobs.runtime.notices import Scope
from tests.supervisor.world import JOB_UID, START, Killed, World, play


def shrinking(deaf: tuple[str, ...] = ()) -> World:
    world = World(saves_s=2, deaf=set(deaf))
    world.job(workers=4, least=2)
    for index in range(4):
        world.pod(f"w-{index}", f"n{index // 2}")
    world.reclaim("n1", 5)
    return world


def stopping(deaf: tuple[str, ...] = ()) -> World:
    world = World(saves_s=2, deaf=set(deaf))
    world.job(workers=3, least=2)
    for index in range(3):
        world.pod(f"w-{index}", f"n{index // 2}")
    world.reclaim("n0", 5)
    return world


def undated() -> World:
    """The signal has no deadline of its own: it is counted from when it was first seen, once."""
    world = shrinking()
    world.reclaim("n1", None, taint="aws-node-termination-handler/spot-itn")
    return world


SCENES = {
    "shrink": shrinking,
    "shrink-deaf": lambda: shrinking(("w-3",)),
    "stop": stopping,
    "stop-deaf": lambda: stopping(("w-0",)),
    "undated": undated,
}


LENGTH_S = {scene: 130 if scene == "undated" else 12 for scene in SCENES}


def records(world: World) -> dict[str, notice.JobRecord]:
    notes = world.jobs["bert"]["metadata"].get("annotations") or {}
    return notice.read_records(notes.get(notice.NOTICES), JOB_UID)


def judge(world: World, scene: str) -> None:
    """What holds at the end, whoever was killed when."""
    assert all(len(deadlines) == 1 for deadlines in world.deadlines.values()), "a pod had two deadlines"
    entries = [(record, pod) for record in records(world).values() for pod in record.pods.values()]
    assert {pod.uid for _, pod in entries} == set(world.deadlines)
    assert all(pod.left is not None for _, pod in entries)
    heard = {pod.uid.rsplit("-", 1)[0] for _, pod in entries if pod.heard is not None}
    told = {uid.rsplit("-", 1)[0] for uid in world.deadlines}
    assert heard == told - world.deaf
    suspended = (world.jobs["bert"]["spec"].get("runPolicy") or {}).get("suspend")
    if scene.startswith("stop"):
        assert suspended and not world.pods
        assert all(record.notice.scope is Scope.JOB and record.stopped for record, _ in entries)
        return
    assert not suspended
    assert told == {"w-2", "w-3"} == {uid.rsplit("-", 1)[0] for uid in world.deleted}
    assert {name for name, pod in world.pods.items() if pod["spec"]["nodeName"] == "n0"} == {"w-0", "w-1"}


@pytest.mark.parametrize("touches", range(6))
@pytest.mark.parametrize("scene", SCENES)
def test_it_gives_notice_and_deletes_in_order(scene: str, touches: int) -> None:
    world = SCENES[scene]()
    world.touches = touches
    assert play(world, LENGTH_S[scene]) == 1
    judge(world, scene)


@pytest.mark.parametrize("scene", SCENES)
def test_it_keeps_every_law_when_killed_at_any_step(scene: str) -> None:
    undisturbed = SCENES[scene]()
    play(undisturbed, LENGTH_S[scene])
    for step in range(1, undisturbed.steps + 1):
        world = SCENES[scene]()
        world.kill_at = step
        assert play(world, LENGTH_S[scene]) == 2, step
        judge(world, scene)


def test_it_lets_no_survivor_hear_anything_while_enough_are_left() -> None:
    world = shrinking()
    play(world, 60)
    assert set(world.told) == {"w-2", "w-3"}


def test_it_deletes_pods_that_have_saved_long_before_the_deadline() -> None:
    world = shrinking()
    world.reclaim("n1", 300)
    play(world, 60)
    assert len(world.deleted) == 2


@dataclass
class Hasty(World):
    """Its processes leave as they hear the word, and are started again: before anything is written on their pods."""

    spared: bool = False
    """The place is not taken after all, once the word was heard."""

    async def tell(self, address: str) -> bool:
        told = len(self.restarts_told)
        try:
            return await super().tell(address)
        finally:
            if len(self.restarts_told) > told:
                self.restarted(address)
                if self.spared:
                    self.nodes["n1"]["spec"] = {}


def three(world: World) -> World:
    world.job(workers=3, least=1)
    for index in range(3):
        world.pod(f"w-{index}", f"n{index // 2}")
    world.reclaim("n1", 5)
    return world


@pytest.mark.parametrize("spared", [False, True])
@pytest.mark.parametrize("touches", [0, 4])
@pytest.mark.parametrize("kill_at", range(30))
def test_a_process_that_leaves_before_its_notice_is_written_is_known_to_have_left(
    kill_at: int, touches: int, spared: bool
) -> None:
    world = three(Hasty(kill_at=kill_at, touches=touches, spared=spared))
    assert play(world, 12) <= 2
    assert world.told == ["w-2"] * len(world.told) and len(world.restarts_told) == 1
    assert not world.looked_at
    assert {uid.rsplit("-", 1)[0] for uid in world.deleted} == {"w-2"}
    [at] = world.deleted.values()
    assert at < START + 5, "it had left, so that its place was free before the deadline"
    [record] = records(world).values()
    assert record.pods["w-2"].left is not None
    assert record.pods["w-2"].heard is not None or kill_at


@pytest.mark.parametrize("kill_at", range(30))
def test_nothing_is_left_of_a_notice_whose_reason_went_while_no_supervisor_ran(kill_at: int) -> None:
    """Neither of one to pods nor of one to the job. A process that was asked to leave leaves, and its pod may go on."""
    for least in (1, 3):
        world = three(World(kill_at=kill_at))
        world.job(workers=3, least=least)
        killed = world.step

        def step(world: World = world, killed: Callable[[], None] = killed) -> None:
            try:
                killed()
            except Killed:
                world.nodes["n1"]["spec"] = {}
                raise

        world.step = step  # type: ignore[method-assign]
        play(world, 12)
        assert not world.looked_at
        heard = {uid.rsplit("-", 1)[0] for uid in world.restarts_told}
        if not heard:
            assert not world.deleted and not records(world)
            assert all(notice.NOTICE not in pod["metadata"]["annotations"] for pod in world.pods.values())


def test_a_process_that_was_started_anew_before_its_notice_is_not_taken_for_one_that_left() -> None:
    """The watch says it later; deleted is its pod at the exit of the process that was asked to leave."""
    world = three(World(saves_s=3))
    world.now += 2
    stale = copy.deepcopy(world.pods["w-2"])
    world.now -= 1
    world.restarted("w-2")
    world.now += 2
    fresh, world.pods["w-2"] = world.pods["w-2"], stale
    tell = world.tell

    async def told(address: str) -> bool:
        world.pods["w-2"] = fresh
        return await tell(address)

    world.tell = told  # type: ignore[method-assign]
    play(world, 12)
    assert list(world.restarts_told.values()) == [1] and len(world.told) == 1
    assert {uid.rsplit("-", 1)[0] for uid in world.deleted} == {"w-2"}


def test_a_pod_that_the_record_has_no_room_for_is_asked_once_the_notice_stands_on_it(monkeypatch) -> None:
    monkeypatch.setattr(notice, "MOST_PODS", 2)
    world = three(World())
    world.job(workers=3, least=3)
    tell, first = world.tell, {}

    async def told(address: str) -> bool:
        first.setdefault(address, notice.NOTICE in world.pods[address]["metadata"]["annotations"])
        return await tell(address)

    world.tell = told  # type: ignore[method-assign]
    play(world, 12)
    assert first == {"w-0": False, "w-1": False, "w-2": True}


def test_it_tells_nobody_without_the_annotation() -> None:
    world = World()
    world.job(workers=2, least=1)
    world.pod("w-0", "n0")
    world.pod("w-1", "n1", managed=False)
    world.reclaim("n1")
    play(world, 60)
    assert not world.told and not world.deleted and not world.deadlines


def test_it_lets_an_unheard_notice_go_when_the_place_is_not_taken_after_all() -> None:
    world = shrinking(deaf=("w-2", "w-3"))
    world.reclaim("n1", 60)
    play(world, 10)
    world.nodes["n1"]["spec"] = {}
    play(world, 60)
    assert not world.deleted
    assert notice.NOTICE not in world.pods["w-2"]["metadata"]["annotations"]


def test_it_stops_the_whole_job_when_a_role_without_bounds_loses_its_place() -> None:
    world = World()
    world.job(workers=2, least=1, master=True)
    world.pod("m-0", "n0", role="master")
    world.pod("w-0", "n1")
    world.pod("w-1", "n1")
    world.reclaim("n0")
    play(world, 60)
    assert set(world.told) == {"m-0", "w-0", "w-1"} and not world.pods


def test_it_ends_pods_that_know_sigterm_with_the_time_there_is() -> None:
    world = World()
    world.job(workers=2, least=1)
    world.pod("w-0", "n0", managed=False, how="sigterm")
    world.pod("w-1", "n1", managed=False, how="sigterm")
    world.reclaim("n1", 30)
    play(world, 1)
    assert world.pods["w-1"]["metadata"]["deletionTimestamp"] == notice.stamp(world.now - 1 + 30)
    play(world, 60)
    assert not world.told and [uid.rsplit("-", 1)[0] for uid in world.deleted] == ["w-1"]


def test_it_gives_a_second_node_of_the_job_its_own_notice() -> None:
    world = World()
    world.job(workers=3, least=1)
    for index in range(3):
        world.pod(f"w-{index}", f"n{index}")
    world.reclaim("n1", 60)
    play(world, 2)
    world.reclaim("n2", 60)
    play(world, 100)
    assert [record.notice.node for record in records(world).values()] == ["n1", "n2"]
    assert all(len(deadlines) == 1 for deadlines in world.deadlines.values())


def test_it_stops_the_rest_when_a_second_node_leaves_too_few() -> None:
    world = World(saves_s=20)
    world.job(workers=3, least=2)
    for index in range(3):
        world.pod(f"w-{index}", f"n{index}")
    world.reclaim("n1", 60)
    play(world, 2)
    world.reclaim("n2", 90)
    play(world, 100)
    scopes = {record.notice.node: record.notice.scope for record in records(world).values()}
    assert scopes == {"n1": Scope.PODS, "n2": Scope.JOB}
    assert world.jobs["bert"]["spec"]["runPolicy"]["suspend"]
