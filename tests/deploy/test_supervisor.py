"""The supervisor over toy children: order, restarts, wedged ones, clean stops, and nobody left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.bootstrap.home import ROOT
from deploy.supervisor import backoff, broker, probes, processes
from deploy.supervisor.backoff import Backoff
from deploy.supervisor.logfile import LogFile
from tests.support.free_ports import free_port

DEADLINE_S = 90.0
PROGRAM = """
import asyncio, sys
from pathlib import Path
from deploy.supervisor import probes
from deploy.supervisor.child import Spec
from deploy.supervisor.supervisor import Supervisor
home = Path(sys.argv[1])
def sh(name, script, **more):
    return Spec(name, ("/bin/sh", "-c", script), more.pop("ready", probes.always), {"HOME_DIR": str(home)}, **more)
specs = eval(sys.argv[2])
asyncio.run(Supervisor(specs, home, home / "state.json", {"port": 1}).run())
"""


class World:
    """One running supervisor and what it publishes."""

    def __init__(self, home: Path, specs: str) -> None:
        self.home = home
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(home), specs], cwd=ROOT)

    def child(self, name: str) -> dict[str, object]:
        try:
            return dict(json.loads((self.home / "state.json").read_text())["children"][name])
        except FileNotFoundError:
            return {"state": "", "pid": 0, "starts": 0}

    def wait(self, condition: Callable[[], object]) -> None:
        wait(condition, lambda: f"{self.home / 'state.json'}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(DEADLINE_S)


def wait(condition: Callable[[], object], about: Callable[[], str] = str) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until, about()
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], World]]:
    worlds: list[World] = []

    def begin(specs: str) -> World:
        worlds.append(World(tmp_path, specs))
        return worlds[-1]

    yield begin
    for world in worlds:
        world.stop()


def alive(pid: object) -> bool:
    return processes.born(int(str(pid))) is not None


def test_it_starts_children_in_order(start: Callable[[str], World]) -> None:
    world = start(
        '[sh("b", "test -f $HOME_DIR/made && sleep 60", after=("a",)), sh("a", "touch $HOME_DIR/made", once=True)]'
    )
    world.wait(lambda: world.child("b")["state"] == "ready")
    assert world.child("a")["state"] == "done"
    assert world.child("b")["starts"] == 1


def test_it_starts_a_killed_child_again(start: Callable[[str], World]) -> None:
    world = start('[sh("a", "exec sleep 60")]')
    world.wait(lambda: world.child("a")["state"] == "ready")
    first = int(str(world.child("a")["pid"]))
    os.kill(first, signal.SIGKILL)
    world.wait(lambda: world.child("a")["state"] == "ready" and world.child("a")["pid"] != first)
    assert world.child("a")["starts"] == 2


def test_it_backs_off_from_a_child_that_cannot_start(start: Callable[[str], World]) -> None:
    world = start('[sh("a", "echo no; exit 3")]')
    world.wait(lambda: int(str(world.child("a")["starts"])) >= 3)
    said = (world.home / "a.log").read_text()
    assert "ended with 3" in said
    assert "again in 0.25 s" in said
    assert "again in 0.50 s" in said


BEATING = 'sh("a", "touch $HOME_DIR/beat; {then}", heartbeat=home / "beat", stalled_s=0.3)'


def test_it_restarts_a_child_that_stalls(start: Callable[[str], World]) -> None:
    world = start(f"[{BEATING.format(then='exec sleep 60')}]")
    world.wait(lambda: int(str(world.child("a")["starts"])) >= 2)
    assert "neither a sign of life nor work" in (world.home / "a.log").read_text()


def test_it_restarts_a_child_that_no_longer_answers(start: Callable[[str], World]) -> None:
    alive = "probes.answers(lambda: asyncio.sleep(0, not (home / 'silent').exists()))"
    world = start(f'[sh("a", "exec sleep 60", alive={alive}, stalled_s=0.3)]')
    world.wait(lambda: world.child("a")["state"] == "ready")
    (world.home / "silent").touch()
    world.wait(lambda: int(str(world.child("a")["starts"])) >= 2)


def test_it_asks_once_where_readiness_is_the_sign_of_life(start: Callable[[str], World], tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    probe = "probes.answers(lambda: asyncio.sleep(0, (home / 'asked').open('a').write('x') > 0))"
    start(f'[(lambda probe: sh("a", "exec sleep 60", ready=probe, alive=probe))({probe})]').wait(
        lambda: asked.exists() and asked.read_text()
    )
    assert asked.read_text() == "x", "the next look is seconds later"


def test_it_leaves_a_silent_child_that_works(start: Callable[[str], World]) -> None:
    """However little of a busy machine it gets: four busy loops run beside it."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        world = start(f"[{BEATING.format(then='while :; do :; done')}]")
        world.wait(lambda: world.child("a")["pid"])
        pid = int(str(world.child("a")["pid"]))
        world.wait(lambda: processes.effort(pid).cpu_s > 1.0)
        assert world.child("a")["starts"] == 1
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()


def test_it_leaves_a_child_without_a_sign_of_life_alone(start: Callable[[str], World]) -> None:
    """Its readiness may be somebody else's fault."""
    ready = "probes.answers(lambda: asyncio.sleep(0, not (home / 'away').exists()))"
    world = start(
        f'[sh("a", "exec sleep 60", ready={ready}, stalled_s=0.1),'
        ' sh("b", "touch $HOME_DIR/beat; exec sleep 60", heartbeat=home / "beat", stalled_s=0.3)]'
    )
    world.wait(lambda: world.child("a")["state"] == "ready")
    (world.home / "away").touch()
    world.wait(lambda: world.child("a")["state"] == "unready" and int(str(world.child("b")["starts"])) >= 2)
    assert world.child("a")["starts"] == 1


def test_a_beating_child_is_ready_with_its_first_beat(start: Callable[[str], World]) -> None:
    world = start(
        '[sh("a", "until test -f $HOME_DIR/go; do sleep 0.05; done; touch $HOME_DIR/beat; exec sleep 60",'
        ' heartbeat=home / "beat")]'
    )
    world.wait(lambda: world.child("a")["state"] == "starting")
    (world.home / "go").touch()
    world.wait(lambda: world.child("a")["state"] == "ready")


def test_it_leaves_no_process_when_stopped(start: Callable[[str], World]) -> None:
    world = start('[sh("a", "sleep 300 & echo $! > $HOME_DIR/grandchild; wait")]')
    grandchild = world.home / "grandchild"
    world.wait(lambda: grandchild.exists() and grandchild.read_text().strip())
    pid = int(str(world.child("a")["pid"]))
    world.stop()
    assert not alive(pid)
    assert not alive(grandchild.read_text())
    assert not (world.home / "state.json").exists()


def test_it_kills_a_child_that_ignores_being_asked(start: Callable[[str], World]) -> None:
    world = start('[sh("a", "trap : TERM; echo on; while :; do sleep 1; done", patience_s=0.3)]')
    world.wait(lambda: "on" in ((world.home / "a.log").read_text() if (world.home / "a.log").exists() else ""))
    pid = int(str(world.child("a")["pid"]))
    world.stop()
    assert not alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent's death")
def test_children_die_with_a_killed_supervisor(start: Callable[[str], World]) -> None:
    world = start('[sh("a", "exec sleep 300")]')
    world.wait(lambda: world.child("a")["state"] == "ready")
    pid = world.child("a")["pid"]
    world.process.kill()
    world.process.wait()
    wait(lambda: not alive(pid))


@given(lives=st.lists(st.floats(0, 200), max_size=40))
def test_it_never_waits_longer_than_the_cap(lives: list[float]) -> None:
    state = Backoff()
    for lived in lives:
        state = state.after(lived)
        assert backoff.FIRST_S <= state.wait_s <= backoff.CAP_S


def test_it_forgets_quick_ends_after_a_long_life() -> None:
    state = Backoff()
    for _ in range(20):
        state = state.after(0.1)
    assert state.wait_s == backoff.CAP_S
    assert state.after(backoff.HEALTHY_S).wait_s == backoff.FIRST_S


def test_it_bounds_a_log(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", largest=100)
    for _ in range(50):
        log.write(b"0123456789012345678\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1", "a.log.2", "a.log.3"]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())


def test_a_full_disk_does_not_stop_a_child() -> None:
    LogFile(Path("/dev/full")).write(b"lost\n")


def test_the_given_broker_comes_first() -> None:
    chosen = broker.choose({"REDIS_URL": "redis://elsewhere:6379/0"}, 1, "secret")
    assert (chosen.kind, chosen.program) == (broker.GIVEN, "")


@pytest.mark.skipif(broker.embedded_program() is None, reason="no embedded Valkey for this machine")
def test_the_embedded_broker_answers_only_with_its_password(tmp_path: Path) -> None:
    chosen = broker.choose({}, free_port(), "secret")
    spec = chosen.spec(tmp_path)
    assert spec is not None
    with subprocess.Popen(spec.argv, stdout=subprocess.DEVNULL) as server:
        wait(lambda: asyncio.run(spec.ready()))
        assert not asyncio.run(probes.pings(chosen.port, "wrong")())
        server.terminate()


@pytest.mark.parametrize("found", [True, "ok", {"ok": True}, {"status": "ok"}])
def test_it_reads_a_good_check(found: object) -> None:
    assert probes.is_ok(found)


@pytest.mark.parametrize("found", [False, "late", {"ok": False}, None, {}])
def test_it_reads_a_bad_check(found: object) -> None:
    assert not probes.is_ok(found)
