"""The post-mortem tells what happened in order, and nothing that a tenant writes becomes markup."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.core.failover.incident_story import Affected, Facts, Staying, Step, Story, What, loss_of, stage, steps
from jobs.core.failover.incidents import OUTAGES, Failed, IncidentKind, kind_of, subject_of
from jobs.core.failover.postmortem import render, title

AT = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FACTS = Facts("u1", IncidentKind.CLUSTER_SILENT, "north", [], "ClusterNotReachable", "no answer", AT, AT + MINUTE, None)
LLAMA = Affected(
    job="j1",
    kind="PyTorchJob",
    namespace="vision",
    name="llama",
    gpus=8,
    attempt=1,
    cluster="north",
    placed_at=AT - 60 * MINUTE,
    started_at=AT - 50 * MINUTE,
    ended_at=AT + 5 * MINUTE,
    outcome="Lost",
    cause="Infrastructure",
    message="north is Unknown",
    state="Running",
    waits=False,
    next_attempt=2,
    next_cluster="south",
    next_placed_at=AT + 6 * MINUTE,
    back_at=AT + 7 * MINUTE,
)


def story(*affected: Affected, **fields) -> Story:
    return replace(Story(FACTS, AT + 20 * MINUTE, affected), **fields)


def test_the_steps_are_in_the_order_of_time_whatever_the_order_of_the_jobs():
    later = replace(LLAMA, job="j2", name="bert", ended_at=AT + 4 * MINUTE, next_placed_at=None, back_at=None)
    made = story(LLAMA, later, facts=replace(FACTS, over_at=AT + 10 * MINUTE))
    assert [(step.what, step.name) for step in steps(made)] == [
        (What.SIGNAL, ""),
        (What.DECLARED, ""),
        (What.LEFT, "bert"),
        (What.LEFT, "llama"),
        (What.PLACED, "llama"),
        (What.RUNNING, "llama"),
        (What.CAUSE_OVER, ""),
    ]


def test_what_is_to_come_is_said_last():
    staying = [Staying("j3", "vision", "stays", 1, None), Staying("j4", "vision", "leaves", 1, AT + 60 * MINUTE)]
    assert steps(story(LLAMA, staying=staying))[-1] == Step(
        AT + 60 * MINUTE, What.EXPECTED, "j4", "vision", "leaves", "north"
    )


@pytest.mark.parametrize(
    ("change", "stopped_min", "ran_min"),
    [
        ({}, 7, 50),
        ({"back_at": None, "waits": True, "next_attempt": None}, 20, 50),
        ({"back_at": None}, 20, 50),
        ({"started_at": None}, 7, 0),
        ({"placed_at": AT + 2 * MINUTE, "started_at": AT + 3 * MINUTE}, 5, 0),
    ],
)
def test_a_job_of_a_silent_cluster_is_stopped_from_the_first_signal_until_it_runs_again(change, stopped_min, ran_min):
    lost = replace(LLAMA, **change)
    found = loss_of(AT, IncidentKind.CLUSTER_SILENT, lost, AT + 20 * MINUTE, is_finished=False)
    assert found == (stopped_min * 60, ran_min * 60)


def test_a_failed_program_is_stopped_from_its_end():
    assert loss_of(AT, IncidentKind.JOB_FAILED, LLAMA, AT + 20 * MINUTE, is_finished=False) == (2 * 60, 55 * 60)


def test_a_job_that_has_ended_for_good_is_not_stopped_for_ever():
    ended = replace(LLAMA, back_at=None, next_attempt=None, waits=False)
    assert loss_of(AT, IncidentKind.JOB_FAILED, ended, AT + 999 * MINUTE, is_finished=True)[0] == 0


def test_the_post_mortem_says_what_was_lost_and_leaves_room_for_why():
    text = render(story(replace(LLAMA, stopped_s=420, ran_s=3000, saved_step=512)))
    assert text.startswith("# north did not answer\n")
    assert "GPU-minutes not used while jobs were stopped: 56.0" in text
    assert "| vision/llama | 8 | 1 | 50 min 0 s | 7 min 0 s | 512 | Running on south |" in text
    assert "- 2026-11-23 12:07:00: vision/llama runs again on south" in text
    assert "## Why it happened" in text


def test_nothing_that_a_tenant_or_a_member_writes_becomes_markup():
    evil = "</td>[x](javascript:alert(1))\n# Heading | `code`"
    text = render(story(replace(LLAMA, message=evil, state="Moving", waits=True, reason={"message": evil})))
    assert "\n# Heading" not in text and "[x](" not in text
    (row,) = [line for line in text.splitlines() if line.startswith("| vision/llama")]
    assert row.replace("\\|", "").count("|") == 8


@pytest.mark.parametrize("kind", IncidentKind)
def test_every_kind_has_a_title(kind):
    assert title(story(LLAMA, facts=replace(FACTS, kind=kind))).strip()
    assert title(story(facts=replace(FACTS, kind=kind))).strip()


def test_it_recovers_between_the_end_of_the_cause_and_the_last_start():
    assert [stage(None, 2), stage(AT, 1), stage(AT, 0)] == ["Open", "Recovering", "Over"]


def test_a_cause_from_a_newer_version_is_a_failure_of_the_job():
    failed = Failed("j1", "north", "Failed", "SomethingNew")
    assert kind_of(failed) is IncidentKind.JOB_FAILED
    assert subject_of(IncidentKind.JOB_FAILED, failed) == "job/j1"


def test_only_an_outage_lasts_without_a_job():
    assert {kind for kind in IncidentKind if kind in OUTAGES} == {
        "ClusterSilent", "ClusterUnhealthy", "CredentialsRefused", "DisruptionSuspected",
    }  # fmt: skip
