"""Facts are read from the event lines of torchrun and dlrover; a hostile line says nothing and costs little."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import checkpoints, facts
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
            dlrover("#network_check", "END", round=0, node_rank=3, success=True, result="True",
                    status="NODE_CHECK_SUCCEEDED", elapsed_time="10.1"),
            {"kind": "NodeCheck", "round": 0, "rank": 3, "seconds": 10.1, "ok": True},
        ),
        (
            dlrover("#network_check", "END", round=1, node_rank=3, status="NODE_CHECK_FAILED", elapsed_time="3600.0"),
            {"kind": "NodeCheck", "round": 1, "rank": 3, "seconds": 3600.0, "ok": False},
        ),
        (
            dlrover("#network_check", "END", round=2, success=True, node_status="{0: True, 1: True, 4: False}",
                    node_check_times="{0: 10.1, 1: 12.05, 4: 3600.0}", node_groups="[[0, 1], [4]]"),
            {"kind": "NodeCheck", "round": 2, "world_size": 3, "seconds": 3600.0, "ok": False, "message": "failed: 4"},
        ),
        (
            "[2026-11-20 10:00:01,310] [WARNING][training.py:1743:run] Network check time of round 1 is 3600.001 and"
            " succeed is False.",
            {"kind": "NodeCheck", "round": 1, "seconds": 3600.001, "ok": False},
        ),
        (
            dlrover("#worker_relaunch", pod_name="llama-edljob-worker-1", relaunch_pod_name="llama-edljob-worker-2",
                    rank="1", relaunch_count="1", max_relaunch_count="3"),
            {"kind": "Relaunch", "rank": 1, "restarts": 1, "remaining": 2, "message": "replaced by llama-edljob-worker-2"},
        ),
        (
            dlrover("#agent_exit", success=False, exc_value="The node is a straggler and exits.",
                    exc_type="<class 'dlrover.python.elastic_agent.torch.training.NodeCheckFailedError'>"),
            {"kind": "Failed", "message": "NodeCheckFailedError: The node is a straggler and exits."},
        ),
        (
            dlrover("#rendezvous", "END", rendezvous_type="elastic-training", round_num=0, max_nodes=2, min_nodes=1,
                    success=True, node_group="[0, 3]", elapsed_time="-1"),
            {"kind": "Rendezvous", "round": 0, "world_size": 2, "ok": True},
        ),
        (
            torchrun("FAILED", raw_error=json.dumps({"message": {"message": "ValueError: bad"}})),
            {"kind": "Failed", "rank": 1, "world_size": 2, "seconds": 5.2, "restarts": 1, "message": "ValueError: bad"},
        ),
        (
            "[2026-11-20 10:00:01,310] [INFO][0][save_shard_error][local_id=0, step=40]",
            {"kind": "Checkpoint", "step": 40, "tier": "disk", "ok": False, "shard": 0},
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


def test_the_steps_of_each_rank_are_corrected_by_its_own_lines():
    said = [(rank, step) for step in (5, 5, 10) for rank in (0, 1, 2)]
    log = "\n".join(f"[2026-11-20 10:00:01][info][{rank}][mem_ckpt_complete][step={step}][{{}}]" for rank, step in said)
    assert [fact.step for fact in facts.read(log, "w0")] == [5, 5, 5, 10, 10, 10, 15, 15, 15]


def test_what_began_is_measured_to_its_end():
    def span(at, kind, name="#rendezvous", number="a"):
        event = {"event_id": number, "event_time": f"2026-11-20T10:00:{at}", "name": name, "event_type": kind}
        return json.dumps({**event, "content": {"round": 1}})

    log = [span("01", "BEGIN"), span("02", "BEGIN", number="b"), span("06.5", "END"), span("09", "END", number="c")]
    assert [fact.seconds for fact in facts.read("\n".join(log), "w0")] == [5.5, None]


def test_a_check_that_a_plain_line_and_its_span_state_is_one_fact():
    plain = "[2026-11-20 10:00:01] Network check time of round 0 is 10.1 and succeed is True."
    span = dlrover("#network_check", "END", round=0, node_rank=3, status="NODE_CHECK_SUCCEEDED", elapsed_time="10.1")
    assert len(facts.read(f"{plain}\n{span}", "w0")) == 1
    assert len(facts.read(f"{plain}\n{span}\n{plain}\n{span}", "w0")) == 2


def saved(second, shard, action, words):
    return f"2026-11-20T10:00:{second:02}.250000000Z [2026-11-20, 10:00:00][info][{shard}][{action}][{words}][{{}}]"


def test_a_checkpoint_has_its_shards_how_long_they_took_and_whether_it_is_whole():
    log = [f"{STAMP}Reset the shared memory after the training starts. The number of global shards is 2."]
    for rank, ends in ((0, 3), (1, 4)):
        log += [saved(1, rank, "mem_ckpt_start", "step=5"), saved(2, rank, "mem_ckpt_complete", "step=5")]
        log += [saved(2, rank, "save_shard_start", f"local_id={rank}, step=5")]
        log += [saved(ends, rank, "save_shard_complete", f"local_id={rank}, step=5")]
    memory, disk = checkpoints.summarize(facts.read("\n".join(log), "w0"))
    assert (memory.step, memory.tier, memory.seconds, memory.ok, memory.committed) == (5, "memory", 1.0, True, None)
    assert (disk.tier, disk.seconds, disk.shards_done, disk.shards_total, disk.committed) == ("disk", 2.0, 2, 2, False)
    log += ["2026-11-20T10:00:05.5Z [INFO] All agents finish saving checkpoint for step 5"]
    [disk] = checkpoints.summarize(facts.read("\n".join(log), "w0"))[1:]
    assert (disk.committed, disk.ok, disk.at.second) == (True, True, 5)


def test_a_shard_that_failed_fails_its_checkpoint():
    log = [
        saved(3, 0, "save_shard_complete", "local_id=0, step=9"),
        saved(4, 1, "save_shard_error", "local_id=1, step=9"),
    ]
    [disk] = checkpoints.summarize(facts.read("\n".join(log), "w0"))
    assert (disk.ok, disk.shards_done, disk.committed) == (False, 1, False)


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
        dlrover("#network_check", "END", node_status="{" + "1: False, " * 700, node_check_times="1: " + "9" * 3000),
        "Network check time of round 0 is ...... and succeed is False",
        "The number of ready shards is 1 != 999999.",
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
