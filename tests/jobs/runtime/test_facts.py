"""Facts are read from the event lines of torchrun and dlrover; a hostile line says nothing and costs little."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import facts
from jobs.runtime.facts import MOST, Kind

STAMP = "2026-11-20T10:00:00.123456789Z "


def dlrover(name, kind="INSTANT", **content):
    event = {"pid": 7, "event_id": "a1", "event_time": "2026-11-20T09:59:59.5", "target": "dlrover-agent", "name": name}
    return json.dumps({**event, "event_type": kind, "content": content})


def torchrun(state, **metadata):
    known = {
        "run_id": "e1",
        "global_rank": 1,
        "group_rank": 0,
        "hostname": "w0",
        "agent_restarts": 1,
        "duration_ms": 5200,
    }
    details = json.dumps({"group_world_size": 2, "local_rank": [0], "role_world_size": [2]})
    event = {"name": f"torchelastic.worker.status.{state}", "source": "WORKER", "timestamp": 1795255200000}
    return json.dumps({**event, "metadata": {**known, "metadata": details, **metadata}})


def only(line):
    (fact,) = facts.read(line, "w0")
    return {name: value for name, value in fact.as_json().items() if name not in ("at", "pod")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            dlrover("#rendezvous", "END", round=2, rank=1, world_size=4, elapsed_time=3.25, success=True),
            {"kind": "Rendezvous", "round": 2, "rank": 1, "world_size": 4, "seconds": 3.25, "ok": True},
        ),
        (
            dlrover("#process_restart", restart_count=1, remaining_restarts=2, failures="{0: exitcode=-9}"),
            {"kind": "Restart", "restarts": 1, "remaining": 2, "exit_code": -9, "message": "{0: exitcode=-9}"},
        ),
        (dlrover("#process_restart_membership", restart_count=1), {"kind": "Membership", "restarts": 1}),
        (
            dlrover("#network_check", "END", round=1, elapsed_time=3600, status="False"),
            {"kind": "NodeCheck", "round": 1, "seconds": 3600.0, "ok": False},
        ),
        (
            dlrover("#network_check", "END", round=0, elapsed_time=10.1, status=True),
            {"kind": "NodeCheck", "round": 0, "seconds": 10.1, "ok": True},
        ),
        (
            dlrover("#worker_relaunch", pod_name="llama-edljob-worker-1", relaunch_pod_name="llama-edljob-worker-2"),
            {"kind": "Relaunch", "message": "replaced by llama-edljob-worker-2"},
        ),
        (
            dlrover("#agent_exit", exc_type="NodeCheckFailedError", exc_value="node 2 is faulty"),
            {"kind": "Failed", "message": "NodeCheckFailedError: node 2 is faulty"},
        ),
        (
            torchrun("FAILED", raw_error=json.dumps({"message": {"message": "ValueError: bad"}})),
            {"kind": "Failed", "rank": 1, "world_size": 2, "seconds": 5.2, "restarts": 1, "message": "ValueError: bad"},
        ),
        (
            "[2026-11-20 10:00:01,310] [INFO][0][save_shard_error][local_id=0, step=40]",
            {"kind": "Checkpoint", "step": 40, "tier": "disk", "ok": False},
        ),
        ("[2026-11-20 10:00:01,310] [INFO] The stragglers are: [2]", {"kind": "Straggler", "rank": 2}),
    ],
)  # fmt: skip
def test_it_reads_what_the_runtimes_print(line, expected):
    assert only(line) == expected
    assert only(STAMP + line) == expected


def test_the_time_of_the_kubelet_goes_before_what_the_line_says():
    line = dlrover("#process_succeeded")
    assert [fact.at.isoformat() for fact in facts.read(f"{line}\n{STAMP}{line}", "w0")] == [
        "2026-11-20T09:59:59.500000+00:00",
        "2026-11-20T10:00:00.123456+00:00",
    ]


def test_the_steps_of_checkpoints_in_memory_are_those_that_were_saved():
    printed = [5, 5, 10, 15]
    log = "\n".join(f"[2026-11-20 10:00:01][info][0][mem_ckpt_complete][step={step}][{{}}]" for step in printed)
    assert [fact.step for fact in facts.read(log, "w0")] == [5, 10, 15, 20]


def test_a_beginning_says_nothing_that_its_end_does_not():
    assert facts.read(dlrover("#rendezvous", "BEGIN", round=1), "w0") == []


def test_it_keeps_the_latest_of_an_endless_log():
    log = "\n".join(f"[2026-11-20 10:00:01][INFO][0][save_shard_complete][local_id=0, step={n}]" for n in range(5000))
    found = facts.read(log, "w0")
    assert len(found) == MOST and found[-1].step == 4999


@pytest.mark.parametrize(
    "line",
    [
        "{" * 100_000,
        "[" * 8000,
        '{"name":' + "[" * 8000,
        '{"name": "#rendezvous", "content": ' + "9" * 7000 + "}",
        dlrover("#rendezvous", "END", round=-1, rank=True, world_size=1e999, elapsed_time="soon"),
        dlrover("#rendezvous", "END", round=[1], rank={"a": 1}, world_size=10**30, elapsed_time=-5),
        dlrover("#process_restart", failures=["x" * 5000], restart_count=None),
        dlrover("#network_check", "END", elapsed_time=[], status={}),
        '{"name": "#rendezvous", "content": 5, "event_type": []}',
        '{"name": ["#rendezvous"]}',
        '{"name": "torchelastic.worker.status.FAILED", "metadata": "x", "timestamp": 1e400}',
        '{"name": "torchelastic.worker.status.FAILED", "metadata": {"metadata": 5, "raw_error": "["}, "timestamp": 9}',
        '{"name": "#agent_exit", "event_time": "' + "9" * 100 + '", "content": {"exc_type": "\\u001b[2J\\ud800"}}',
    ],
)
def test_a_hostile_line_yields_nothing_that_is_out_of_bounds(line):
    for fact in facts.read(line, "w0"):
        shown = fact.as_json()
        assert all(len(str(value)) < 300 for value in shown.values())
        assert fact.message.isprintable()
        assert all(
            0 <= (getattr(fact, name) or 0) <= 2**53 for name in ("round", "rank", "world_size", "restarts", "step")
        )


def test_it_reads_the_checkpoints_that_a_script_reports_itself_with_their_own_steps():
    said = [
        {"at": "2026-11-26T04:05:06.789Z", "rank": 0, "world_size": 4, "step": step, "tier": "memory", "seconds": 0.02}
        for step in (5, 10)
    ]
    log = "\n".join(json.dumps({"name": "convoy.checkpoint", **each}) for each in [*said, {"step": "x"}, {"tier": 3}])
    read = [(fact.kind, fact.step, fact.tier, fact.seconds, fact.ok, fact.rank) for fact in facts.read(log, "w0")]
    assert read == [(facts.Kind.CHECKPOINT, step, "memory", 0.02, True, 0) for step in (5, 10)]


def test_a_log_full_of_events_is_read_in_a_moment():
    log = "\n".join([dlrover("#rendezvous", "END", round=1)] * 2500)
    started = time.process_time()
    facts.read(log, "w0")
    assert time.process_time() - started < 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    "round",
    "round_num",
    "rank",
    "world_size",
    "elapsed_time",
    "status",
    "failures",
    "errmsg",
    "pod_name",
    "exc_type",
]


@given(
    st.sampled_from(["#rendezvous", "#network_check", "#process_restart", "#agent_exit", "torchelastic.x.FAILED"]),
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
    VALUES,
)
def test_it_reads_events_with_any_values(name, content, other):
    line = json.dumps({"name": name, "content": content, "metadata": content, "timestamp": other, "event_time": other})
    for fact in facts.read(line, "w0"):
        assert fact.kind in Kind and fact.message.isprintable()
        json.dumps(fact.as_json(), default=str)
