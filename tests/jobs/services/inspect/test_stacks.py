"""The stacks of all ranks are read from the logs of a job's pods and merged; real processes print them."""

import selectors
import signal
import subprocess
import sys

import pytest

from fleet.models import Pod

pytestmark = pytest.mark.django_db(transaction=True)
RANK = """
import faulthandler, signal, sys, threading, time
faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
def all_reduce():
    print("ready", flush=True); sys.stdin.read()
def load_batch():
    print("ready", flush=True); time.sleep(60)
def step(rank):
    load_batch() if rank == 2 else all_reduce()
step(int(sys.argv[1]))
"""


@pytest.fixture
def dumped():
    """What four processes print of their stacks, of which the third sleeps while the others wait."""
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(rank)], stdin=-1, stdout=-1, stderr=-1) for rank in range(4)
    ]
    try:
        for rank in ranks:
            assert rank.stdout is not None and rank.stdout.readline() == b"ready\n"
            rank.send_signal(signal.SIGUSR1)
        yield [_stderr(rank) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def _stderr(rank):
    text = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(rank.stderr, selectors.EVENT_READ)
        while b"in <module>" not in text:
            assert waiting.select(60)
            text += rank.stderr.read1()
    return text


def read(as_admin, job):
    answer = as_admin.get(f"/api/v1/jobs/{job.uid}/stacks/")
    assert answer.status_code == 200
    return answer.json()


def test_1_4_15_the_one_of_four_real_ranks_that_sleeps_is_the_suspect(training, logs, dumped, as_admin):
    job = training(workers=3)
    for name, text in zip(("master-0", "worker-0", "worker-1", "worker-2"), dumped, strict=True):
        logs[f"llama-{name}"] = b"step 1 loss 2.3\n" + text
    merged = read(as_admin, job)
    assert (merged["ranks"], merged["suspects"], merged["pods_without"]) == ("0-3", "2", [])
    shown = [(line["depth"], line["function"], line["ranks"], line["others"]) for line in merged["lines"]]
    assert shown == [
        (0, "<module>", "0-3", ""),
        (1, "step", "0-3", ""),
        (2, "all_reduce", "0-1/3", "2"),
        (2, "load_batch", "2", "0-1/3"),
    ]
    assert merged["lines"][2]["text"] == "all_reduce@<string>:5@0-1/3|2"


def test_1_4_15_the_ranks_of_the_seeds_case_are_folded(training, logs, as_admin):
    stuck = {1, 2, 3, 9, *range(11, 16)}
    job = training(workers=1)
    for pod, first in (("llama-master-0", 0), ("llama-worker-0", 8)):
        logs[pod] = "".join(
            f"[rank{rank}]:Thread 0x01 (most recent call first):\n"
            f'[rank{rank}]:  File "/nccl.py", line 9 in {"p2p" if rank in stuck else "sleep"}\n'
            for rank in range(first, first + 8)
        ).encode()
    assert [line["text"] for line in read(as_admin, job)["lines"]] == [
        "p2p@/nccl.py:9@1-3/9/11-15|0/4-8/10",
        "sleep@/nccl.py:9@0/4-8/10|1-3/9/11-15",
    ]


def test_a_pod_without_a_dump_and_a_member_that_is_away_are_said(training, logs, as_admin):
    job = training(workers=1)
    logs["llama-master-0"] = logs["llama-worker-0"] = b"step 1 loss 2.3\n"
    merged = read(as_admin, job)
    assert (merged["lines"], merged["pods_without"]) == ([], ["llama-master-0", "llama-worker-0"])
    job.cluster.access = {**job.cluster.access, "server": "https://127.0.0.1:1"}
    job.cluster.save()
    assert len(read(as_admin, job)["warnings"]) == 2


@pytest.mark.parametrize(
    "log",
    [
        b"Thread 1 (idle)\n" + b"    f (a.py:1)\n" * 500_000,
        b"".join(b"[rank%d]:Thread 1 (idle)\n[rank%d]:    f (a.py:1)\n" % (n, n) for n in range(100_000)),
        b"Thread 1 (idle)\n    \x1b[31m\x00\xff (\xff:1)\n",
        b"stacks of rank 99999999999999999999\nThread 1 (idle)\n    f (a.py:1)\n",
    ],
)
def test_a_hostile_log_is_answered_within_bounds_and_changes_nothing(training, logs, as_admin, log):
    job = training(workers=1)
    before = (job.state, job.charge, list(Pod.objects.values()))
    logs["llama-master-0"] = log
    assert len(str(read(as_admin, job))) < 300_000
    job.refresh_from_db()
    assert (job.state, job.charge, list(Pod.objects.values())) == before


def test_another_teams_job_has_no_stacks(training, as_nobody):
    job = training(workers=1)
    assert as_nobody.get(f"/api/v1/jobs/{job.uid}/stacks/").status_code in (401, 403, 404)
