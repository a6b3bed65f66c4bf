"""The engine counts what the product really carried out in a schedule, and a run in which an action never succeeds fails."""

from dataclasses import replace

import pytest

from tests.faults.engine import effects, objects, running
from tests.faults.engine.effects import NEEDED_OF, Effects
from tests.faults.engine.judge import Judge, Struck
from tests.faults.engine.members import Contents
from tests.faults.engine.rows import Rows
from tests.faults.engine.users import ELASTIC_PODS, NIGHT, NOTICED, STATE

NOTHING = Rows([], [], [], [], [], [], [])
UID = "11111111-1111-4111-8111-111111111111"


def copy(name: str, *, pods: int = 1, **annotations: str) -> dict:
    labels = {objects.JOB: UID, objects.ATTEMPT: "1"}
    role = {"replicas": pods, "template": {"spec": {"containers": [{}]}}}
    metadata = {"name": name, "uid": name, "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": {"pytorchReplicaSpecs": {"Worker": role}}}


def job(name: str, **fields: object) -> dict:
    return {"name": name, "state": "Running", "deleting_at": None, **fields}


def verdict(seed: int, *seen: str, starved: bool = False) -> dict:
    return {"seed": seed, "faults": [], "starved": starved, "effects": list(seen)}


def test_a_resize_counts_once_a_member_has_a_copy_of_that_size():
    first, smaller, larger = ELASTIC_PODS
    seen = Effects()
    for pods, counted in ((first, set()), (smaller, {"shrunk"}), (larger, {"shrunk", "grown"})):
        seen.look([copy("elastic", pods=pods)], None)
        assert seen.seen == counted
    assert Effects().seen == set()


def test_it_reads_what_was_done_from_rows_copies_and_the_timeline():
    seen = Effects()
    ended = [{"job_id": 1, "number": 1, "outcome": "Lost"}]
    jobs = [job("spread", shares=[{}, {}]), job("doomed", deleting_at="noon"), job("looping", state="Failed")]
    seen.look([copy("paused", **{STATE: "noon"}), copy(NIGHT)], replace(NOTHING, jobs=jobs, attempts=ended))
    assert seen.seen == {
        "divided", "deleted", "given up", "state preserved", "started in its window", "left its cluster",
    }  # fmt: skip
    lines = [("paused", "Suspended"), ("paused", "Resumed"), ("lender", "Reclaimed"), ("paused", "WaitsForCluster")]
    seen.read_timeline({"regarding_name": name, "reason": reason} for name, reason in lines)
    assert "stopped by notice" not in seen.seen
    seen.read_timeline({"regarding_name": NOTICED, "reason": reason} for reason in ("ReclaimNotice", "Reclaimed"))
    assert seen.seen | {"shrunk", "grown"} == NEEDED_OF.keys()


def test_a_run_fails_in_which_an_action_never_had_its_effect():
    most = [effect for effect, needed in NEEDED_OF.items() if needed <= 6 and effect != "shrunk"]
    run = [verdict(seed, *most) for seed in range(6)]
    assert effects.missing(run) == ["shrunk"] and not running.passed(run)
    assert running.passed(run[:5]), "too few to say so"
    assert running.passed([*run, verdict(6, "shrunk", starved=True)])
    assert running.passed([verdict(seed, *most, starved=True) for seed in range(6)]), "none of them was judged"
    assert "| shrunk | 0 of 6 |" in effects.table(run)


@pytest.mark.parametrize(("opens_at", "struck", "is_early"), [
    (0.0, Struck(), True), (2.0**40, Struck(), True), (2.0**40, Struck(clock=True), False), (1.0, Struck(), False),
])  # fmt: skip
def test_the_judge_sees_a_copy_before_the_window_of_its_queue(opens_at, struck, is_early):
    court = Judge(16, {}, struck=struck, opens_at=opens_at)
    court.look({"north": Contents([], [], [copy(NIGHT)], [])}, None)
    assert any("before the window" in fault for fault in court.faults) == is_early
