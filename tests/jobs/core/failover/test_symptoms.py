"""What ended a process is read from the end of its log: recorded logs of real kinds of failures, and hostile ones."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.failover import symptoms, tracebacks
from jobs.core.failover.symptoms import Symptom

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(
    ("log", "symptom", "rank", "where", "message"),
    [
        ("value_error_of_one_rank", "Exception", 1, "train.py:163 in main", "ValueError: Expected input batch_size"),
        ("cuda_out_of_memory", "GpuOutOfMemory", None, "functional.py:2901 in silu", "CUDA out of memory"),
        ("xid_79", "GpuFault", None, "", "Xid (PCI:0000:3b:00): 79"),
        ("xid_31_of_the_program", "Exception", None, "kernels.py:12 in forward", "illegal memory access"),
        ("uncorrectable_ecc", "GpuFault", None, "", "uncorrectable ECC error"),
        ("nccl_timeout", "PeerLost", 6, "", "Watchdog caught collective operation timeout"),
        ("infiniband_completion", "NetworkFault", None, "", "NET/IB : Got completion from peer"),
        ("peer_closed_gloo", "PeerLost", None, "train.py:33 in <module>", "Connection closed by peer"),
        ("file_not_found", "DataError", None, "memmap.py:229 in __new__", "result_text_document.bin"),
        ("stale_file_handle", "DataError", None, "data.py:40 in __getitem__", "Stale file handle"),
        ("broken_checkpoint", "DataError", None, "train.py:61 in resume", "PytorchStreamReader failed"),
        ("dataloader_killed", "OutOfMemory", None, "train.py:120 in <module>", "killed by signal: Killed"),
        ("shared_memory", "OutOfMemory", None, "", "insufficient shared memory"),
        ("cgroup_out_of_memory", "OutOfMemory", None, "", "Killed process 4021"),
        ("torchrun_sigkill", "Killed", 13, "", "rank 13 ended with signal 9"),
        ("torchrun_sigterm", "Terminated", None, "", "SIGTERM"),
        ("torchrun_exit_code_only", "Exited", 2, "", "rank 2 ended with exit code 7"),
        ("import_error", "Exception", None, "train.py:3 in <module>", "No module named 'flash_attn'"),
    ],
)
def test_it_tells_what_ended_the_process(log, symptom, rank, where, message):
    finding = symptoms.read((LOGS / f"{log}.log").read_text())
    assert finding is not None
    assert (finding.symptom.value, finding.rank, finding.where) == (symptom, rank, where)
    assert message in finding.message


def test_it_says_nothing_about_a_log_that_says_nothing():
    assert symptoms.read((LOGS / "nothing.log").read_text()) is None
    assert symptoms.read("") is None


def test_it_keeps_the_ranks_of_one_log_apart():
    log = "\n".join(
        [
            "[rank0]: Traceback (most recent call last):",
            "[rank1]: Traceback (most recent call last):",
            '[rank0]:   File "a.py", line 1, in f',
            '[rank1]:   File "b.py", line 2, in g',
            "[rank1]: KeyError: 'b'",
            "[rank0]: ValueError: a",
        ]
    )
    assert [(str(raised), raised.rank) for raised in tracebacks.find(log.split("\n"))] == [
        ("KeyError: 'b'", 1),
        ("ValueError: a", 0),
    ]


def test_the_log_of_the_rank_that_raised_tells_more_than_those_of_ranks_that_lost_it():
    first, second = (symptoms.read((LOGS / f"{name}.log").read_text()) for name in ("nccl_timeout", "import_error"))
    assert first is not None and second is not None
    assert symptoms.most_telling([("a", first), ("b", second)]) == ("b", second)
    assert symptoms.most_telling([]) is None


@pytest.mark.parametrize(
    "log",
    [
        "Traceback (most recent call last):\n" * 15_000,
        "".join(f"[rank{number}]: Traceback (most recent call last):\n" for number in range(10_000)),
        "A" * 600_000,
        "[" * 600_000,
        "Root Cause (first observed failure)\n" * 15_000,
        "Xid (PCI:" * 60_000,
        "\x1b[" * 300_000,
        "NVRM: Xid (PCI:0000:3b:00): 79\n" * 20_000,
        'Traceback (most recent call last):\n  File "' + "x" * 100_000 + "\n" * 9 + "ValueError: " + "y" * 100_000,
    ],
)
def test_a_hostile_log_costs_little_and_yields_little(log):
    started = time.process_time()
    finding = symptoms.read(log)
    assert time.process_time() - started < 10
    assert finding is None or len(str(finding.as_json())) < 5_000


PIECES = [
    "Traceback (most recent call last):", "\n", '  File "a", line 1, in f\n', "Error: x", "[rank1]: ", "\x00", "é", "\r",
    "Xid 79", "Root Cause (first observed failure)\n", "  rank      : 1 (local_rank: 1)\n", "  exitcode  : -9\n",
    "  exitcode  : -99999999999999\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join))
def test_it_reads_any_text_and_finds_something_printable_within_bounds(log):
    finding = symptoms.read(log)
    if finding is not None:
        shown = [finding.message, finding.where, *finding.excerpt]
        assert all(text.isprintable() for text in shown)
        assert len(finding.excerpt) <= 12 and max(map(len, shown)) <= 300
        assert finding.symptom in Symptom
