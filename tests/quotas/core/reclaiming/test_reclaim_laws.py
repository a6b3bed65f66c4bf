"""Laws of reclaim on random trees and streams: what was promised can be had, no more is taken than needed, it ends."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import admission
from quotas.core.queues.admission import Admitted, Bound, Code, check_admission
from quotas.core.reclaiming import reclaim
from quotas.core.simulation import Job, simulate_to_fixpoint
from quotas.core.trees.amounts import MAX_JOBS
from quotas.core.trees.tree import PreemptPolicy, QueuePolicy
from tests.quotas.core import forests
from tests.quotas.core.builders import NOON
from tests.quotas.core.rights import anywhere, fits_without, in_its_right
from tests.support.examples import examples

SOME = settings(max_examples=examples(150), deadline=None)


@SOME
@given(st.data())
def test_it_comes_to_rest_and_stays_there(data):
    """No-flap: whatever runs and waits, admission and reclaim in turn come to an end, and then do nothing more."""
    tree = data.draw(forests.trees(crowded=True))
    ledger, jobs = Ledger(tree), {}
    for _ in range(data.draw(st.integers(1, 3))):
        jobs |= {unit.id: Job(unit) for unit in data.draw(forests.units(tree, prefix=f"s{len(jobs)}-"))}
        made = simulate_to_fixpoint(ledger, jobs.values(), NOON)
        jobs |= made.running
        stopped = {key for key in jobs if key not in made.running}
        jobs |= {key: replace(jobs[key], started_at=None) for key in stopped}
        again = simulate_to_fixpoint(ledger, jobs.values(), NOON)
        assert again.reclaims == [] and again.running.keys() == made.running.keys()
        for key in [key for key in made.running if data.draw(st.booleans())]:
            ledger.release(jobs.pop(key).unit.charge)


@SOME
@given(st.data())
def test_what_is_promised_can_always_be_had(data):
    """I9: within the min of its leaf no job is refused because of a borrower; job counts that nobody promised aside."""
    ledger, running, preemptor = data.draw(forests.crowds())
    row, asked = ledger.row[preemptor.leaf], ledger.vector(preemptor.charge.amounts)
    promised = asked <= ledger.min[row] - ledger.held.used[row]
    charge = preemptor.charge
    answer = check_admission(ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
    if (promised | ~ledger.guarded[row] | (asked == 0)).all() and getattr(answer, "resource", "") != MAX_JOBS:
        assert reclaim.plan_reclaim(ledger, preemptor, running, anywhere) is not None


@SOME
@given(st.data())
def test_it_takes_enough_and_nothing_that_could_stay(data):
    """By trying every smaller choice among the victims: none of them would do."""
    ledger, running, preemptor = data.draw(forests.crowds())
    made = reclaim.plan_reclaim(ledger, preemptor, running, anywhere)
    if made is None:
        return
    taken = [job for job in running if job.key in {victim.key for victim in made.victims}]
    assert fits_without(ledger, preemptor, taken)
    assert not any(
        fits_without(ledger, preemptor, fewer) and in_its_right(ledger, preemptor, fewer)
        for size in range(len(taken))
        for fewer in combinations(taken, size)
    )


@SOME
@given(st.data())
def test_it_finds_nobody_for_one_who_is_promised_nothing_below_who_refuses_it(data):
    ledger, running, preemptor = data.draw(forests.crowds())
    amounts = {**preemptor.charge.amounts, "cpu": data.draw(st.integers(0, 9)) * 1000}
    preemptor = replace(preemptor, charge=replace(preemptor.charge, amounts=amounts))
    charge = preemptor.charge
    no = check_admission(ledger, charge.leaf, amounts, preemptible=charge.preemptible)
    preempts = ledger.tree.by_path[charge.leaf].attributes.preempt_policy is not PreemptPolicy.NEVER
    if not isinstance(no, Admitted) and no.bound is Bound.MAX and not preempts:
        promised = admission.promised_below(ledger, charge, no)
        assert promised or reclaim.plan_reclaim(ledger, preemptor, running, anywhere) is None


@SOME
@given(st.data())
def test_it_stops_only_borrowers_and_lower_priorities_that_may_be_stopped(data):
    ledger, running, preemptor = data.draw(forests.crowds())
    made = reclaim.plan_reclaim(ledger, preemptor, running, anywhere)
    jobs = {job.key: job for job in running}
    for victim in made.victims if made else ():
        job = jobs[victim.key]
        assert job.charge.preemptible
        if job.leaf == preemptor.leaf:
            assert job.priority < preemptor.priority
        else:
            row, column = ledger.row[job.leaf], ledger.column[victim.resource]
            assert ledger.held.used[row, column] > ledger.min[row, column] and victim.over > 0


@SOME
@given(st.data())
def test_it_makes_one_plan_of_one_state(data):
    ledger, running, preemptor = data.draw(forests.crowds())
    before = ledger.held.copy()
    one = reclaim.plan_reclaim(ledger, preemptor, running, anywhere)
    two = reclaim.plan_reclaim(ledger, preemptor, data.draw(st.permutations(running)), anywhere)
    assert one == two
    assert all((getattr(ledger.held, each) == getattr(before, each)).all() for each in ("used", "firm", "claims"))


@SOME
@given(st.data())
def test_it_takes_a_place_only_where_that_makes_one_and_nobody_who_could_stay(data):
    """The clusters have room once certain jobs are gone: they go, and by trying every smaller choice nobody goes beside."""
    ledger, running, preemptor = data.draw(forests.crowds())
    needed = frozenset(data.draw(st.sets(st.sampled_from([job.key for job in running] or ["none"]), max_size=3)))
    made = reclaim.plan_reclaim(ledger, preemptor, running, needed.issubset)
    taken = [job for job in running if made and job.key in {victim.key for victim in made.victims}]
    assert made is None or needed <= {job.key for job in taken}
    for size in range(len(taken)):
        for fewer in combinations(taken, size):
            enough = needed <= {job.key for job in fewer} and fits_without(ledger, preemptor, fewer)
            assert not (enough and in_its_right(ledger, preemptor, fewer))


@SOME
@given(st.data())
def test_it_starves_nobody_when_those_before_it_are_finite(data):
    """More urgent ones keep coming, for a while; one ends at a time. Everybody who can ever fit runs in the end."""
    tree = data.draw(forests.trees(crowded=data.draw(st.booleans())))
    ledger, jobs = Ledger(tree), {unit.id: Job(unit) for unit in data.draw(forests.units(tree, most=6))}
    urgent = [replace(unit, priority=9) for unit in data.draw(forests.units(tree, most=6, prefix="urgent"))]
    made = simulate_to_fixpoint(ledger, jobs.values(), NOON)
    while urgent or made.running:
        jobs = {key: replace(job, started_at=None) for key, job in jobs.items()} | made.running
        for key in data.draw(st.sampled_from(sorted(made.running) or [""])).split():
            ledger.release(jobs.pop(key).unit.charge)
        jobs |= {unit.id: Job(unit) for unit in urgent[-1:]}
        urgent = urgent[:-1]
        made = simulate_to_fixpoint(ledger, jobs.values(), NOON)
    allowed = {Code.NEVER_FITS} | (
        {"BehindInQueue"} if tree.nodes[0].attributes.queue_policy is QueuePolicy.BLOCK else set()
    )
    assert {answer.code for _, answer in made.waits} <= allowed
