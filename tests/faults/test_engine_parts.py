"""The engine's own parts: seeds cover the grid, every step exists, and the judge sees each kind of fault it is there for."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from tests.faults.engine import judge, mutations, objects, running, steps, summary
from tests.faults.engine.judge import Judge, Struck
from tests.faults.engine.members import Contents
from tests.faults.engine.rows import Rows
from tests.faults.engine.schedules import STRIKES, Fault, Target, schedule
from tests.faults.engine.steps import STEPS, Switchboard
from tests.faults.engine.users import STATE, Answer

UID = "11111111-1111-4111-8111-111111111111"
NOTHING = Rows([], [], [], [], [], [], [])
RUNNING = {"conditions": [{"type": "Running", "status": "True"}]}
SUCCEEDED = {"conditions": [{"type": "Succeeded", "status": "True"}]}


def marked(name: str, attempt: int = 1) -> dict:
    return {"name": name, "labels": {objects.JOB: UID, objects.ATTEMPT: str(attempt)}}


def containers(gpus: int) -> dict:
    return {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}


def pod(name: str = "gang-0", *, attempt: int = 1, gpus: int = 1, phase: str = "Running", node: str = "n1") -> dict:
    spec = {**containers(gpus), "nodeName": node}
    return {"metadata": marked(name, attempt), "spec": spec, "status": {"phase": phase}}


def copy(*, name: str = "gang", attempt: int = 1, pods: int = 1, gpus: int = 1, status: dict = RUNNING) -> dict:
    role = {"replicas": pods, "template": {"spec": containers(gpus)}}
    metadata = {**marked(name, attempt), "uid": f"{name}-{attempt}"}
    return {"metadata": metadata, "spec": {"pytorchReplicaSpecs": {"Worker": role}}, "status": status}


def member(*, pods: tuple = (), copies: tuple = (), groups: tuple = ()) -> Contents:
    return Contents(list(pods), [], list(copies), list(groups))


def job(**fields: object) -> dict:
    base = {"id": 1, "uid": UID, "name": "gang", "state": "Succeeded", "attempt": 1, "reason": None, "charge": None}
    return {**base, **fields}


def work(state: str, number: int = 1) -> dict:
    return {"job_uid": UID, "attempt": number, "state": state, "claim": "", "message": ""}


def attempt(number: int = 1, outcome: str = "Succeeded", ended_at: object = "noon") -> dict:
    return {"job_id": 1, "number": number, "outcome": outcome, "ended_at": ended_at, "message": ""}


WELL = replace(NOTHING, jobs=[job()], attempts=[attempt()])
ENDED = {"north": member(copies=(copy(status=SUCCEEDED),)), "south": member()}


def seen(members: dict[str, Contents], rows: Rows | None = None, struck: Struck | None = None) -> list[str]:
    court = Judge(16, {}, struck=struck or Struck())
    court.look(members, rows)
    return list(court.faults)


def at_end(members: dict[str, Contents], rows: Rows, **ends: str) -> list[str]:
    return Judge(16, ends or {"gang": "Succeeded"}).faults_at_end(members, rows)


def test_a_row_of_seeds_has_every_target_with_every_fault_and_every_step():
    strikes = [schedule(seed, server=True).strikes[0] for seed in range(len(STRIKES))]
    assert {(strike.target, strike.fault) for strike in strikes} == set(STRIKES)
    assert {strike.step for strike in strikes} == {step.name for step in STEPS}


@pytest.mark.parametrize("server", [True, False])
def test_as_many_seeds_as_the_grid_has_cells_strike_every_step_with_every_fault_of_every_target(server):
    pairs = len({(s.target, s.fault) for s in (schedule(n, server=server).strikes[0] for n in range(40))})
    firsts = [schedule(n, server=server).strikes[0] for n in range(pairs * len(STEPS))]
    assert len({(s.target, s.fault, s.step) for s in firsts}) == pairs * len(STEPS)


def test_a_seed_is_always_the_same_schedule_and_sqlite_is_no_server_to_strike():
    assert [schedule(7, server=True) for _ in range(2)] == [schedule(7, server=True)] * 2
    without = [strike for seed in range(200) for strike in schedule(seed, server=False).strikes]
    assert Target.DATABASE not in {strike.target for strike in without}
    assert Fault.PAUSE in {strike.fault for strike in without}


def test_every_step_is_a_function_of_the_product():
    for step in STEPS:
        owner, name = steps._owner(step.function)
        assert callable(getattr(owner, name)), step


def test_every_time_that_is_shortened_is_one_of_the_product(tmp_path):
    env = {**os.environ, "FAULTS_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "tests.faults.engine.settings"}
    program = "from tests.faults.engine import nursery; nursery.prepare()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_process_that_reaches_the_armed_step_waits_there_for_the_strike():
    board = Switchboard()
    board.reach(1)
    board.arm(STEPS[0].name, 2)
    board.reach(1)
    assert board.hit == 0
    child = os.fork()
    if child == 0:
        board.reach(1)
        os._exit(0)
    deadline = time.monotonic() + 60
    while board.hit != child:
        assert time.monotonic() < deadline
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    board.disarm()
    assert os.waitpid(child, 0)[1] == 0


def test_the_judge_is_content_with_a_job_that_ended_once():
    assert seen(ENDED, WELL) == [] and at_end(ENDED, WELL) == []


def test_the_judge_sees_a_gang_on_two_members():
    assert "split" in seen({"north": member(pods=(pod(),)), "south": member(pods=(pod("gang-1"),))})[0]


def test_the_judge_sees_a_member_that_is_asked_for_more_than_it_has():
    two = {"north": member(copies=(copy(pods=9), copy(attempt=2, pods=8)))}
    assert "asked for more" in seen(two)[0]
    assert seen({"north": member(copies=(copy(pods=16),))}) == []


@pytest.mark.parametrize("struck", [frozenset(), frozenset({"west"})])
def test_the_judge_sees_two_live_copies_unless_one_of_the_members_was_struck(struck):
    both = {"north": member(copies=(copy(),)), "south": member(copies=(copy(attempt=2),))}
    assert "two live copies" in seen(both, struck=Struck(struck))[0]
    assert seen(both, struck=Struck(frozenset({"south"}))) == []


def test_the_judge_sees_a_copy_that_is_newer_than_its_job():
    assert "has attempt 2" in seen({"north": member(copies=(copy(attempt=2),))}, WELL)[0]


def test_the_judge_sees_that_something_terminal_changed():
    court = Judge(16, {})
    for state in ("Failed", "Queued"):
        court.look(ENDED, replace(WELL, jobs=[job(state=state)]))
    assert list(court.faults) == ["gang was Failed and is Queued"]


LEFT = {
    "is charged": ("charged", replace(WELL, jobs=[job(charge={"a": 1})]), ENDED),
    "is held": ("a hold", replace(WELL, holds=[{"job_uid": UID, "attempt": 1}]), ENDED),
    "is to be sent": (
        "a work",
        replace(WELL, works=[{"job_uid": UID, "attempt": 1, "state": "Pending", "claim": "", "message": ""}]),
        ENDED,
    ),
    "has an older copy": ("keeps attempt 1", replace(WELL, jobs=[job(attempt=2)]), ENDED),
    "was deleted": ("keeps attempt 1", NOTHING, ENDED),
    "has pods without a copy": ("keeps the pod", WELL, {"north": member(pods=(pod(phase="Succeeded"),))}),
    "has a group without a copy": ("keeps the group", WELL, {"north": member(groups=({"metadata": marked("gang")},))}),
    "runs on": ("runs the pod", WELL, {"north": member(pods=(pod(),), copies=(copy(status=SUCCEEDED),))}),
    "is shown wrongly": (
        "is shown with 3",
        replace(WELL, nodes=[{"cluster": "north", "name": "n1", "requested": {"nvidia.com/gpu": 3}}]),
        ENDED,
    ),
    "shows a pod that is gone": (
        "pods of north",
        replace(WELL, pods=[{"cluster": "north", "name": "gang-0", "phase": "Running"}]),
        ENDED,
    ),
    "has an open attempt": ("its attempts are", replace(WELL, attempts=[attempt(ended_at=None)]), ENDED),
    "succeeded by no attempt": ("ended so", replace(WELL, attempts=[attempt(outcome="Reclaimed")]), ENDED),
    "was moved": (
        "was moved",
        replace(WELL, jobs=[job(attempt=2)], attempts=[attempt(outcome="Lost"), attempt(2)]),
        {"north": member(copies=(copy(attempt=2, status=SUCCEEDED),))},
    ),
}


@pytest.mark.parametrize("left", LEFT)
def test_the_judge_sees_at_the_end_that_a_job(left):
    words, rows, members = LEFT[left]
    ends = {} if left == "was deleted" else {"gang": "Succeeded"}
    faults = Judge(16, ends).faults_at_end(members, rows)
    assert any(words in fault for fault in faults), faults


def test_the_judge_sees_a_job_that_ran_to_its_end_twice():
    court = Judge(16, {})
    for number in (1, 2):
        court.look({"north": member(copies=(copy(attempt=number, status=SUCCEEDED),))}, None)
    assert any("ran to its end as attempts [1, 2]" in fault for fault in court.faults_at_end({}, WELL))


@pytest.mark.parametrize("struck", [frozenset(), frozenset({"north"})])
def test_the_judge_allows_an_earlier_attempt_to_succeed_last_where_its_member_was_struck(struck):
    rows = replace(WELL, attempts=[attempt(), attempt(2, outcome="Suspended")])
    court = Judge(16, {"gang": "Succeeded"}, struck=Struck(struck))
    court.look({"north": member(copies=(copy(attempt=2),))}, None)
    assert any("ended so" in fault for fault in court.faults_at_end(ENDED, rows)) == (not struck)


def test_the_judge_sees_a_copy_that_runs_on_after_its_job_has_ended():
    live = {"north": member(copies=(copy(),))}
    failed = replace(WELL, jobs=[job(state="Failed")], works=[work("Applied")])
    court = Judge(16, {})
    court.look(live, failed)
    assert not court.faults, "the rows may be newer than what was read of the members"
    court.look(live, failed)
    assert list(court.faults) == ["attempt 1 of gang runs on in north, and the job has Failed"]
    court = Judge(16, {})
    for _ in range(2):
        court.look(live, replace(failed, works=[work("Withdrawing")]))
    assert not court.faults


def test_the_judge_excuses_no_second_copy_of_a_job_whose_policy_waits_for_its_cluster():
    both = {"north": member(copies=(copy(name="paused"),)), "south": member(copies=(copy(name="paused", attempt=2),))}
    assert "two live copies of paused" in seen(both, struck=Struck(frozenset({"north"})))[0]
    assert seen(both, struck=Struck(frozenset({"north"}), restored=frozenset({"north"}))) == []


def divided(*shares: tuple[int, str]) -> dict:
    return job(name="spread", attempt=2, shares=[{"attempt": number, "state": state} for number, state in shares])


def test_the_judge_allows_a_divided_job_its_shares_and_no_more_pods_than_it_has():
    two = {
        "north": member(copies=(copy(name="spread", pods=3),)),
        "south": member(copies=(copy(name="spread", attempt=2),)),
    }
    assert seen(two) == []
    two["south"] = member(copies=(copy(name="spread", attempt=2, pods=2),))
    assert seen(two) == ["the shares of spread ask for 5 pods, and it has 4"]


def test_the_judge_wants_each_share_of_a_divided_job_to_succeed_once():
    ended = {
        name: member(copies=(copy(name="spread", attempt=number, status=SUCCEEDED),))
        for number, name in ((1, "north"), (2, "south"))
    }
    both = replace(NOTHING, jobs=[divided((1, "Succeeded"), (2, "Succeeded"))], attempts=[attempt(), attempt(2)])
    assert at_end(ended, both, spread="Succeeded") == []
    lost = replace(both, jobs=[divided((1, "Lost"), (2, "Succeeded"))])
    faults = at_end(ended, lost, spread="Succeeded")
    assert "north keeps attempt 1 of spread, which is at [2]" in faults
    assert any("shares of spread were moved although no member was struck" in fault for fault in faults)
    open_share = replace(both, attempts=[attempt(), attempt(2, outcome="Lost")])
    assert any("its shares ended so" in fault for fault in at_end(ended, open_share, spread="Succeeded"))


def test_the_judge_sees_a_copy_that_has_not_the_size_of_its_job():
    sized = replace(WELL, jobs=[job(roles=[{"name": "Worker", "replicas": 3}])])
    assert "the copies of gang have 1 pods, and its row says 3" in at_end(ENDED, sized)


def began(number: int, status: dict, **annotations: str) -> dict[str, Contents]:
    body = copy(name="paused", attempt=number, status=status)
    body["metadata"]["annotations"] = annotations
    return {"north": member(copies=(body,))}


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ({STATE: "noon"}, ""),
        ({}, "attempt 2 of paused has the state of attempt 0, and attempt 1 had reported"),
        ({STATE: "one"}, "attempt 2 of paused has the state of attempt 2"),
    ],
)
def test_the_judge_wants_a_later_attempt_to_have_the_state_that_an_earlier_one_had_reported(state, fault):
    court = Judge(16, {})
    court.look(began(1, {"startTime": "noon"}), replace(WELL, jobs=[job(name="paused", status={"startTime": "noon"})]))
    court.look(began(2, {"startTime": "one"}, **state), None)
    assert list(court.faults) == ([fault] if fault else [])


def test_the_judge_sees_a_job_that_is_shown_as_running_without_a_copy():
    shown = replace(WELL, jobs=[job(state="Running", attempt=2, deleting_at=None)])
    court = Judge(16, {})
    for expected in ([], ["gang is shown as running, and no member has its attempt 2"]):
        court.look({"north": member(copies=(copy(),))}, shown)
        assert list(court.faults) == expected


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_every_guard_that_can_be_taken_out_is_in_the_product(name):
    mutation = mutations.MUTATIONS[name]
    text = Path(ROOT, *mutation.module.split(".")).with_suffix(".py").read_text()
    assert mutation.source(text) != text
    with pytest.raises(ValueError, match="name the guard anew"):
        mutation.source("")


def test_the_judge_allows_a_later_attempt_that_was_taken_back_before_it_was_sent():
    rows = replace(WELL, attempts=[attempt(), attempt(2, outcome="Superseded")])
    assert at_end(ENDED, rows) == []
    court = Judge(16, {"gang": "Succeeded"})
    court.look({"north": member(copies=(copy(attempt=2),))}, None)
    assert any("ended so" in fault for fault in court.faults_at_end(ENDED, rows))


def test_the_judge_wants_a_reason_of_what_waits_and_an_end_of_what_ends():
    waits = replace(NOTHING, jobs=[job(state="Queued", reason={"code": "NoClusterFits", "message": ""})])
    assert at_end({}, waits, gang="Queued") == ["gang is Queued without a reason"]
    assert "is not there and has to be Succeeded" in at_end({}, NOTHING)[0]
    assert "has to be deleted" in at_end(ENDED, WELL, gang="")[0]


def test_the_judge_allows_503_while_the_database_is_away_and_no_other_error_of_a_server():
    away = Struck(database_s=(100.0, 110.0))
    answers = [
        Answer("rest", "GET jobs/", status, at) for status, at in ((503, 105.0), (503, 90.0), (500, 105.0), (0, 1.0))
    ]
    assert [line.split(":")[1] for line in judge.wrong_answers(answers, away)] == [
        " GET jobs/ was answered 503",
        " GET jobs/ was answered 500",
    ]


def test_the_judge_allows_no_request_that_struck_at_nothing_because_it_cannot_be_read():
    unread = Answer("rest", "POST jobs/1/resize/", 415, 1.0)
    assert len(judge.wrong_answers([unread, replace(unread, status=409)], Struck())) == 1


def test_the_judge_reads_errors_of_our_own_in_logs_and_no_others(tmp_path):
    log = tmp_path / "worker-1.log"
    log.write_text("Traceback\nKeyError: 'x'\npsycopg.OperationalError: away\nfleet.member.errors.MemberAway: x\n")
    assert judge.own_errors([log]) == ["worker-1: KeyError: 'x' (1 times)"]


def verdict(seed: int, faults: int = 0, *, starved: bool = False) -> dict:
    return {"seed": seed, "faults": ["x"] * faults, "starved": starved}


def test_what_failed_on_a_busy_machine_is_not_decided_and_most_of_a_run_has_to_be():
    once_more = [verdict(1, 1, starved=True), verdict(1)]
    assert running.passed(once_more) and running.undecided(once_more) == set()
    assert not running.passed([verdict(1, 1, starved=True), verdict(1, 1), verdict(2)])
    undecided = [verdict(1, 1, starved=True), verdict(2)]
    assert running.passed(undecided) and running.undecided(undecided) == {1}
    assert not running.passed([*undecided, verdict(3, 1, starved=True)])


def test_a_run_goes_on_where_its_report_ends_and_its_table_names_what_was_found():
    lines = [
        {"seed": 0, "database": "postgres", "schedule": "web kill at before-submit#1 (purge Directly)", "faults": []},
        {
            "seed": 1,
            "database": "sqlite",
            "schedule": "web pause at x#1, then broker drop at y#2 (purge)",
            "faults": ["z"],
        },
    ]
    lines.append({**lines[0], "seed": 2, "starved": True})
    assert summary.left_to_run(range(3), lines, "postgres") == [1, 2]
    rows = summary.table(lines).splitlines()
    assert "| web | kill | 1 |  |" in rows and "| broker | drop | 1 | 1 (sqlite) |" in rows
    assert len(rows) == len(STRIKES) + 2


def test_it_refuses_an_interpreter_whose_processes_would_not_be_those_of_the_world(monkeypatch, capsys):
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    with pytest.raises(SystemExit):
        running.main(["--seeds", "0"])
    assert "this is the interpreter of /elsewhere" in capsys.readouterr().err
