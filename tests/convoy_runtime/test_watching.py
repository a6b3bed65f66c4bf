"""A training that hangs shows where, in lines that the fleet can read; one that is only slow does not."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy_runtime import lines, watching
from convoy_runtime.watching import Watch

ROOT = Path(__file__).parents[2]
HANGS = """
import threading, time
import convoy_runtime as convoy
convoy.start(listen=False, least_silence_s=0.5)
def waits_for_ever(): threading.Event().wait()
threading.Thread(target=waits_for_ever, name="loader", daemon=True).start()
for step in range(3): convoy.report(step)
convoy.saved(2, "memory", 0.25)
def all_reduce(): threading.Event().wait()
all_reduce()
"""


@pytest.fixture(autouse=True)
def pace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(watching, "_pace", watching._Pace())
    yield


def events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    yield from (json.loads(line) for line in process.stdout)


def dumped(said: Iterator[dict[str, Any]], cause: str) -> dict[str, list[str]]:
    """By thread, the frames of the next dump that has all its parts."""
    stacks: dict[str, list[str]] = {}
    for event in said:
        if event["name"] == "convoy.stack" and event["cause"] == cause:
            stacks[event["thread"]] = event["frames"]
            if len(stacks) == event["parts"]:
                break
    return stacks


def test_it_shows_the_stacks_of_a_hang_and_again_when_a_signal_asks():
    environment = {**os.environ, "RANK": "3", "WORLD_SIZE": "4"}
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        said = events(process)
        saved, silence = next(said), next(said)
        assert (saved["name"], saved["step"], saved["tier"], saved["seconds"]) == (
            "convoy.checkpoint",
            2,
            "memory",
            0.25,
        )
        assert (silence["name"], silence["rank"], silence["world_size"], silence["step"]) == ("convoy.silence", 3, 4, 2)
        assert silence["silent_s"] >= silence["limit_s"] == 0.5
        for cause in ("silence", "signal"):
            stacks = dumped(said, cause)
            assert set(stacks) == {"MainThread", "loader"}, "not those of the runtime itself"
            assert "all_reduce" in stacks["MainThread"][1] + stacks["MainThread"][2]
            assert any("waits_for_ever" in frame for frame in stacks["loader"])
            process.send_signal(signal.SIGUSR1)
    finally:
        process.kill()
        process.wait(60)


def looks(watch: Watch, *moments: float) -> list[str]:
    return [watch.look(at) for at in moments]


def steps(*moments: float, first: int = 0) -> None:
    for step, at in enumerate(moments, first):
        watching.note_step(step, at)


def test_it_is_not_silent_before_it_knows_what_a_step_takes():
    watch = Watch(120)
    assert looks(watch, 1e6) == [""]
    steps(0)
    assert looks(watch, 1e6) == [""], "the first step may compile for an hour"


def test_it_waits_ten_times_a_step_where_that_is_longer():
    steps(0, 60, 120)
    assert looks(Watch(120), 120 + 599, 120 + 600) == ["", "silence"]
    assert looks(Watch(900), 120 + 600, 120 + 900) == ["", "silence"]


def test_it_says_a_silence_once_and_each_time_it_has_doubled_four_times_at_most():
    steps(0, 1)
    at = [1 + 120 * 2**n for n in range(7)]
    watch = Watch(120)
    assert looks(watch, *(moment for each in at for moment in (each, each + 1))) == ["silence", ""] * 4 + [""] * 6
    watching.note_step(2, at[-1])
    assert looks(watch, at[-1] + 1, at[-1] + 2) == ["resumed", ""]


@pytest.mark.parametrize("depth", [3, 100])
def test_a_stack_fits_into_one_line_and_says_what_was_left_out(capfd: pytest.CaptureFixture[str], depth: int):
    dump = "Thread 0x0000000000000001 (most recent call first):\n"
    dump += "".join(f'  File "/{"x" * 80}/f{n}.py", line {n} in g{n}\n' for n in range(depth))
    (stack,) = watching.threads(dump)
    watching._print_stack(1e9, {"cause": "silence"}, stack)
    line = capfd.readouterr().out
    said = json.loads(line)
    assert len(line.encode()) <= lines.LONGEST + 1 and line.count("\n") == 1
    assert said["frames"][0].endswith("f0.py:0 g0") and len(said["frames"]) + said.get("more", 0) == depth


def test_a_log_that_is_closed_ends_nothing(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> int:
        raise BrokenPipeError

    write: Callable[..., int] = refuse
    monkeypatch.setattr(os, "write", write)
    lines.emit("silence", 0.0)
