"""The model of the life is sound: closed, every state is reachable and has a way out, and terminal states have none."""

from itertools import product

import pytest

from jobs.core.life.jobs import JOB, WAITING, JobEvent, JobState
from jobs.core.life.machine import IllegalTransition
from jobs.core.life.shares import SHARE, ShareEvent, ShareState
from jobs.core.life.works import ACTIONABLE, WORK, WorkEvent, WorkState

MACHINES = {
    "job": (JOB, JobEvent, JobState),
    "work": (WORK, WorkEvent, WorkState),
    "share": (SHARE, ShareEvent, ShareState),
}
machines = pytest.mark.parametrize(("machine", "events", "states"), MACHINES.values(), ids=MACHINES)


@machines
def test_every_event_is_in_the_table_and_leads_between_known_states(machine, events, states):
    assert set(machine.transitions) == set(events)
    for event, rule in machine.transitions.items():
        assert {rule.target, *rule.sources} <= set(states) and rule.writers, event


@machines
def test_each_pair_of_state_and_event_is_either_allowed_or_refused(machine, events, states):
    for state, event in product(states, events):
        if machine.allows(state, event):
            assert machine.after(state, event) == machine.target(event)
        else:
            with pytest.raises(IllegalTransition, match=f"{event} cannot happen in state {state}"):
                machine.after(state, event)


@machines
def test_every_state_can_be_reached_from_a_beginning(machine, events, states):
    assert machine.reachable(*machine.initial()) == set(states)


@machines
def test_terminal_states_have_no_way_out_and_all_others_have_one(machine, events, states):
    for state in states:
        assert bool(machine.successors(state)) == (state not in machine.terminal), state


def test_from_every_state_a_job_can_still_end_either_way():
    for state in set(JobState) - JOB.terminal:
        assert JOB.terminal <= JOB.reachable(state), state


def test_a_suspended_job_comes_back_by_a_resume_or_its_own_success_or_ends_at_its_deadline():
    ends = {event for event in JobEvent if JOB.allows("Suspended", event)}
    returns = {JobEvent.RETURNED, JobEvent.RETURNED_RUNNING}
    assert ends == {JobEvent.RESUMED, JobEvent.SUCCEEDED, JobEvent.SHARES_SUCCEEDED, JobEvent.TIMED_OUT, *returns}


def test_a_job_is_placed_only_while_it_waits():
    assert JOB.sources(JobEvent.PLACED) == WAITING


def test_from_every_state_a_copy_can_still_be_removed():
    for state in set(WorkState) - {WorkState.GONE}:
        assert "Withdrawing" in WORK.reachable(state) and "Gone" in WORK.reachable(state), state


def test_nothing_is_begun_for_a_work_that_was_ordered_away():
    """A paused sender that comes back cannot send: only a pending work is begun."""
    assert WORK.sources(WorkEvent.BEGUN) == {"Pending"}
    beginning = {state for state in WorkState if "Pending" in WORK.reachable(state)}
    assert beginning == {"Pending"}


def test_states_in_which_a_worker_acts_end_in_states_in_which_none_does():
    for state in ACTIONABLE:
        assert WORK.reachable(state) - ACTIONABLE, state


def test_a_lost_share_can_still_succeed_and_a_live_one_can_still_be_lost():
    assert "Succeeded" in SHARE.reachable("Lost")
    for state in set(ShareState) - {ShareState.SUCCEEDED}:
        assert {"Succeeded", "Lost"} <= SHARE.reachable(state), state


def test_a_share_that_was_lost_is_never_taken_for_one_that_stands_without_being_regained():
    assert {event for event in ShareEvent if SHARE.allows("Lost", event)} == {ShareEvent.REGAINED}
