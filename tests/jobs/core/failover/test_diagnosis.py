"""The class of a failure, by the state of a pod and by recorded logs of real failures: every source that is looked at."""

from pathlib import Path

import pytest

from jobs.core.failover import symptoms
from jobs.core.failover.causes import PodEnd, classify
from jobs.core.failover.diagnosis import diagnose

LOGS = Path(__file__).parent / "logs"


def diagnosed(log="", **ended):
    pod = PodEnd("llama-worker-3", "Failed", node="node-a", **ended)
    finding = symptoms.read((LOGS / f"{log}.log").read_text()) if log else None
    return diagnose(classify([pod]), [(pod, finding)] if finding else [])


@pytest.mark.parametrize(
    ("ended", "log", "category", "words"),
    [
        ({"exit_code": 1, "reason": "Error"}, "", "code", "exit code 1"),
        ({"exit_code": 1}, "import_error", "code", "No module named 'flash_attn'"),
        ({"exit_code": 139, "reason": "Error"}, "", "unknown", "exit code 139 (SIGSEGV)"),
        ({"exit_code": 137, "reason": "Error"}, "", "unknown", "exit code 137 (SIGKILL)"),
        ({"exit_code": 143, "reason": "Error"}, "", "preemption", "exit code 143 (SIGTERM)"),
        ({"exit_code": 1}, "torchrun_sigterm", "preemption", "SIGTERM"),
        ({"exit_code": 137, "reason": "OOMKilled"}, "", "code", "ran out of memory"),
        ({"exit_code": 1}, "cuda_out_of_memory", "code", "CUDA out of memory"),
        ({"exit_code": 1}, "xid_79", "infrastructure", "Xid (PCI:0000:3b:00): 79"),
        ({"exit_code": 1}, "nccl_timeout", "unknown", "Watchdog caught collective operation timeout"),
        ({"exit_code": 1}, "file_not_found", "data", "result_text_document.bin"),
        ({"reason": "Evicted"}, "", "preemption", "Evicted"),
        ({"exit_code": 137, "disruption": "PreemptionByScheduler"}, "import_error", "preemption", "PreemptionByScheduler"),
        ({"exit_code": 1, "node_ready": False}, "import_error", "infrastructure", "node node-a is not ready"),
        ({}, "", "unknown", "llama-worker-3"),
    ],
)  # fmt: skip
def test_each_source_has_its_class_and_its_words(ended, log, category, words):
    diagnosis = diagnosed(log, **ended)
    assert (diagnosis.kind.value, words in diagnosis.summary) == (category, True), diagnosis.summary


def test_a_signal_that_asks_to_stop_widens_no_budget():
    assert diagnosed(exit_code=143).cause == diagnosed(exit_code=137).cause == "Unknown"
