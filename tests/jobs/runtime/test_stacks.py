"""Stacks of ranks are read from dumps in logs and merged: recorded dumps, the seed's example, and laws with an oracle."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import dumps, stacks
from jobs.runtime.dumps import Frame

FAULTHANDLER = """\
step 41 loss 2.31
Thread 0x00007f1c6d7fa640 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f1c9aa4f740 (most recent call first):
  File "/opt/torch/distributed/distributed_c10d.py", line 2806 in all_reduce
  File "/app/train.py", line 30 in step
  File "/app/train.py", line 52 in <module>
step 42 loss 2.30
"""
PY_SPY = """\
Process 4021: python -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4021 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    step (train.py:30)
        Locals:
            loss: 2.31
    <module> (train.py:52)
Thread 4044 (idle): "Thread-1 (run)"
    wait (threading.py:324)
    _bootstrap (threading.py:1002)
"""


def stack(*functions: str) -> dumps.Stack:
    return tuple(Frame(function, f"train.py:{n}") for n, function in enumerate(functions))


def lines(*of_ranks: tuple[int, dumps.Stack]) -> list[str]:
    tree = stacks.Tree()
    for rank, each in of_ranks:
        tree.add(rank, [each])
    return [f"{'  ' * line.depth}{line}" for line in tree.lines()]


def functions(dump: dumps.Dump) -> list[list[str]]:
    return [[frame.function for frame in each] for each in dump.stacks]


def test_it_reads_a_dump_of_faulthandler_between_other_lines():
    [dump] = dumps.read(FAULTHANDLER)
    assert functions(dump) == [["_bootstrap", "wait"], ["<module>", "step", "all_reduce"]]
    assert dump.stacks[1][-1].source == "/opt/torch/distributed/distributed_c10d.py:2806"
    assert (dump.rank, dump.local_rank) == (None, None)


def test_it_reads_a_dump_of_py_spy():
    [dump] = dumps.read(PY_SPY)
    assert functions(dump) == [["<module>", "step", "all_reduce"], ["_bootstrap", "wait"]]
    assert dump.stacks[0][1] == Frame("step", "train.py:30")


def test_it_keeps_ranks_that_write_to_one_log_apart():
    head, *rest = FAULTHANDLER.replace("all_reduce", "sleep").splitlines()
    mixed = [head]
    for ours, theirs in zip(FAULTHANDLER.splitlines()[1:], rest, strict=True):
        mixed += [f"[default0]:{ours}", f"[default1]:{theirs}"]
    first, second = dumps.read("\n".join(mixed))
    assert (first.local_rank, second.local_rank) == (0, 1)
    assert (functions(first)[1][-1], functions(second)[1][-1]) == ("all_reduce", "sleep")


@pytest.mark.parametrize("text", [FAULTHANDLER, PY_SPY])
def test_of_several_dumps_the_last_counts(text):
    [dump] = dumps.read(text.replace("all_reduce", "forward") + "\n" * 3 + text)
    assert "all_reduce" in str(functions(dump)) and "forward" not in str(functions(dump))


def test_dumps_of_two_processes_that_were_taken_together_are_both_kept():
    stamped = ["\n".join(f"2026-11-20T10:0{m}:07Z {line}" for line in PY_SPY.splitlines()) for m in (1, 5, 5)]
    second = stamped[2].replace("4021", "4022").replace("all_reduce", "sleep")
    both = dumps.read("\n".join([stamped[0], stamped[1], second]))
    assert [functions(dump)[0][-1] for dump in both] == ["all_reduce", "sleep"]


def test_a_line_may_name_the_rank_of_the_dump_that_follows():
    text = "".join(f"convoy_runtime: stacks of rank {rank}\n{FAULTHANDLER}" for rank in (8, 9))
    assert [dump.rank for dump in dumps.read(text)] == [8, 9]


def test_it_reads_the_lines_of_the_runtime_and_keeps_the_latest_dump_of_each_rank():
    def line(rank, dump, part, *frames):
        about = {"name": "convoy.stack", "at": "2026-11-26T04:05:06.790Z", "rank": rank, "world_size": 2}
        about |= {"cause": "silence", "dump": dump, "part": part, "parts": 2, "thread": "t", "frames": frames}
        return json.dumps(about, separators=(",", ":"))

    text = [
        line(rank, dump, 0, f"/train/data.py:{dump} next", "/train/main.py:88 <module>")
        for dump in (1, 2)
        for rank in (3, 4)
    ]
    read = dumps.read("\n".join([*text, line(4, 2, 1, "/lib/threading.py:1 run"), line(4, "x", 1), line(4, 2, 2, 7)]))
    assert [(dump.rank, functions(dump)) for dump in read] == [
        (3, [["<module>", "next"]]),
        (4, [["<module>", "next"], ["run"]]),
    ]
    assert read[0].stacks[0][1].source == "/train/data.py:2"


def test_the_ranks_of_the_seeds_example_are_folded_as_it_folds_them():
    stuck = {1, 2, 3, 9, *range(11, 16)}
    merged = lines(*((rank, stack("main", "p2p" if rank in stuck else "sleep")) for rank in range(16)))
    assert merged[:2] == ["main@train.py:0@0-15|", "  p2p@train.py:1@1-3/9/11-15|0/4-8/10"]
    assert stacks.fold([0, 1, 2, 3]) == "0-3" and stacks.fold([]) == ""


def test_the_rank_that_is_missing_where_the_others_wait_is_the_suspect():
    tree = stacks.Tree()
    for rank in range(8):
        waits = stack("main", "step", "all_reduce") if rank != 6 else stack("main", "load_batch")
        tree.add(rank, [waits, stack("bootstrap", "watchdog")])
    assert tree.suspects() == {6}


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_ranks_that_are_all_at_one_place_have_no_suspect(ranks):
    tree = stacks.Tree()
    for rank in range(ranks):
        tree.add(rank, [stack("main", "all_reduce")])
    assert tree.suspects() == frozenset()


def test_two_ranks_at_different_places_suspect_neither():
    tree = stacks.Tree()
    tree.add(0, [stack("main", "all_reduce")])
    tree.add(1, [stack("main", "sleep")])
    assert tree.suspects() == frozenset()


STACKS = st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(lambda names: stack(*names))
RANKS = st.dictionaries(st.integers(0, 20), st.lists(STACKS, min_size=1, max_size=3), min_size=1, max_size=8)


def ranks_of_prefixes(of_ranks):
    """The oracle: every beginning of a stack, with the ranks that have it. It knows no tree."""
    everyone = {}
    for rank, each in of_ranks.items():
        for one in each:
            for end in range(1, len(one) + 1):
                everyone.setdefault(one[:end], set()).add(rank)
    return everyone


@given(RANKS, st.randoms())
def test_each_frame_has_the_ranks_whose_stacks_begin_so_in_whatever_order_they_came(of_ranks, random):
    order = list(of_ranks.items())
    random.shuffle(order)
    tree = stacks.Tree()
    for rank, each in order:
        tree.add(rank, each)
    path, merged = [], {}
    for line in tree.lines():
        path[line.depth :] = [line.frame]
        merged[tuple(path)] = line.ranks
        assert line.ranks | line.others == of_ranks.keys() and not line.ranks & line.others
    assert merged == ranks_of_prefixes(of_ranks)
    assert tree.suspects() < of_ranks.keys()


@given(st.sets(st.integers(0, 200)))
def test_folded_ranks_can_be_unfolded(ranks):
    unfolded = set()
    for part in filter(None, stacks.fold(ranks).split("/")):
        first, _, last = part.partition("-")
        unfolded |= set(range(int(first), int(last or first) + 1))
    assert unfolded == ranks


PIECES = [
    *FAULTHANDLER.splitlines(True),
    *PY_SPY.splitlines(True),
    "[rank1]:",
    "\x00",
    "é",
    "\r",
    "stacks of rank 99999999",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join))
def test_any_text_is_read_into_printable_frames_within_bounds(log):
    for dump in dumps.read(log):
        assert 0 < len(dump.stacks) <= dumps.MOST_THREADS
        for frame in (frame for each in dump.stacks for frame in each):
            assert frame.function.isprintable() and frame.source.isprintable()
            assert len(frame.function) <= 200 and len(frame.source) <= 211


@pytest.mark.parametrize(
    "log",
    [
        "Thread 1 (idle)\n" * 20_000,
        "".join(f"Thread {n} (idle)\n    f{n} (a.py:{n})\n" for n in range(20_000)),
        "Thread 1 (idle)\n" + "    f (a.py:1)\n" * 40_000,
        "".join(f"[rank{n}]:Thread 1 (idle)\n[rank{n}]:    f (a.py:1)\n" for n in range(20_000)),
        "".join(f"Process {n}: x\nThread 1 (idle)\n    f (a.py:1)\n" for n in range(20_000)),
        "Thread 0x" * 100_000,
    ],
)
def test_a_hostile_log_yields_little(log):
    read = dumps.read(log)
    assert len(read) <= dumps.MOST_PROCESSES
    assert all(len(dump.stacks) <= dumps.MOST_THREADS for dump in read)
    assert all(len(each) <= dumps.MOST_FRAMES for dump in read for each in dump.stacks)


def test_a_tree_of_endless_frames_is_cut_and_says_so():
    tree = stacks.Tree()
    for n in range(stacks.MOST_NODES + 5):
        tree.add(0, [(Frame(f"f{n}", "a.py"),)])
    assert tree.is_cut and len(list(tree.lines())) == stacks.MOST_NODES


def test_it_reads_what_faulthandler_of_this_python_prints(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import faulthandler, sys\ndef dumped():\n    faulthandler.dump_traceback(sys.stdout)\ndumped()\n"
    )
    printed = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout  # noqa: S603
    [dump] = dumps.read(printed)
    assert [frame.function for frame in dump.stacks[-1]][-1:] == ["dumped"], printed
    assert all(re.fullmatch(r".+:\d+", frame.source) for frame in dump.stacks[-1])
