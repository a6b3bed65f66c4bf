"""Jobs that can run on with fewer pods give them back one by one, before any job is stopped whole."""

from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.reclaiming import reclaim
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.amounts import of_job
from tests.quotas.core import forests
from tests.quotas.core.builders import NOON, quota, tree, unit
from tests.quotas.core.rights import anywhere, fits_without, in_its_right
from tests.support.examples import examples

SOME = settings(max_examples=examples(100), deadline=None)
GPU = "nvidia.com/gpu"
EIGHT = {GPU: 8}


def running(key: str, leaf: str, gpus: int, surplus: int = 0, priority: int = 0) -> Running:
    charge = Charge(f"root/{leaf}", of_job({GPU: gpus}), True)
    return Running(key, charge, priority, NOON, surplus=(("worker", {GPU: 1}),) * surplus)


def plan(gpus: int, *jobs: Running, can_place=anywhere) -> list[str] | None:
    """Who gives back when ``a``, which is promised 4 of 8, asks for that many."""
    found = Ledger(tree(EIGHT, quota("a", {GPU: 4}, EIGHT), quota("b", {GPU: 4}, EIGHT)))
    for job in jobs:
        found.charge(job.charge)
    preemptor = replace(unit("preemptor"), charge=Charge("root/a", of_job({GPU: gpus}), True))
    made = reclaim.plan_reclaim(found, preemptor, jobs, can_place)
    return made and sorted(victim.key for victim in made.victims)


def test_it_gives_back_as_many_pods_as_are_missing_and_stops_nobody():
    jobs = [running("elastic", "b", 6, 4), running("rigid", "b", 2)]
    assert plan(2, *jobs) == ["elastic#worker#0", "elastic#worker#1"]


def test_it_gives_back_pods_of_a_higher_priority_before_a_job_of_a_lower_is_stopped():
    assert plan(2, running("elastic", "b", 4, 2, priority=9), running("rigid", "b", 4)) is not None
    assert "rigid" not in (plan(2, running("elastic", "b", 4, 2, priority=9), running("rigid", "b", 4)) or [])


def test_it_stops_whole_only_what_the_pods_of_all_others_do_not_make_up_for():
    jobs = [running("elastic", "b", 4, 1), running("small", "b", 1), running("big", "b", 3)]
    assert plan(2, *jobs) == ["elastic#worker#0", "small"]


def test_it_takes_the_other_pods_along_when_one_is_stopped_whole():
    found = Ledger(tree(EIGHT, quota("a", EIGHT, EIGHT), quota("b", {GPU: 0}, EIGHT)))
    job = running("elastic", "b", 8, 6)
    found.charge(job.charge)
    preemptor = replace(unit("preemptor"), charge=Charge("root/a", of_job(EIGHT), True))
    made = reclaim.plan_reclaim(found, preemptor, [job], anywhere)
    assert made is not None and made.freed[GPU] == 8 and "elastic" in {victim.key for victim in made.victims}


def test_it_stops_a_job_whole_where_its_pods_alone_make_no_place():
    """The leaf would be at its min before there is a place: as a whole the job straddles it, and goes."""
    job = running("elastic", "b", 6, 4)
    assert plan(4, job, can_place=lambda gone: "elastic" in gone) == ["elastic"]


@st.composite
def elastic_crowds(draw):
    ledger, jobs, preemptor = draw(forests.crowds())
    elastic = []
    for job in jobs[:5]:
        count = min(draw(st.integers(0, 2)), max(job.charge.amounts[GPU] - 1, 0))
        elastic.append(replace(job, surplus=(("worker", {GPU: 1}),) * count))
    return ledger, elastic + jobs[5:], preemptor


def as_jobs(jobs, keys):
    """What goes with these victims as jobs of the same leaf, by the definition: a whole job goes with all its pods."""
    for job in jobs:
        if job.key in keys:
            yield replace(job, surplus=())
        elif count := sum(key.startswith(f"{job.key}#") for key in keys):
            yield replace(job, charge=replace(job.charge, amounts={GPU: count}), surplus=())


def choices_of_pods(jobs):
    """Every number of pods that each of the jobs can give back."""
    able = [job for job in jobs if job.surplus and job.charge.preemptible]
    for counts in product(*(range(len(job.surplus) + 1) for job in able)):
        yield [f"{job.key}#worker#{i}" for job, count in zip(able, counts, strict=True) for i in range(count)]


@SOME
@given(st.data())
def test_it_stops_nobody_whole_where_giving_back_pods_alone_would_do(data):
    """By trying every number of pods of every job; and whatever is chosen is enough, within the right, and needed."""
    ledger, jobs, preemptor = data.draw(elastic_crowds())
    made = reclaim.plan_reclaim(ledger, preemptor, jobs, anywhere)
    keys = {victim.key for victim in made.victims} if made else set()
    if made:
        gone = list(as_jobs(jobs, keys))
        assert fits_without(ledger, preemptor, gone) and in_its_right(ledger, preemptor, gone)
        assert made.freed.get(GPU, 0) == sum(job.charge.amounts[GPU] for job in gone)
    if any("#" not in key for key in keys):
        others = [job for job in jobs if job.leaf != preemptor.leaf]
        for fewer in choices_of_pods(others):
            gone = list(as_jobs(jobs, fewer))
            enough = fits_without(ledger, preemptor, gone) and in_its_right(ledger, preemptor, gone)
            assert not (enough and all(_borrows(ledger, preemptor, gone, job) for job in gone))


def _borrows(ledger, preemptor, gone, job):
    """Whether the job's side is above its min in GPUs up to the parting, even when the others have gone."""
    with ledger.released(other.charge for other in gone if other is not job):
        rows = ledger.path_rows[job.leaf]
        apart = [row for row in rows if row not in set(ledger.path_rows[preemptor.leaf])]
        column = ledger.column[GPU]
        return all(ledger.held.claims[row, column] > ledger.min[row, column] + _more(job) for row in apart)


def _more(job):
    return job.charge.amounts[GPU] - 1


@SOME
@given(st.data())
def test_whoever_was_served_by_stopping_jobs_whole_is_served_by_pods_too(data):
    ledger, jobs, preemptor = data.draw(elastic_crowds())
    rigid = [replace(job, surplus=()) for job in jobs]
    if reclaim.plan_reclaim(ledger, preemptor, rigid, anywhere) is not None:
        assert reclaim.plan_reclaim(ledger, preemptor, jobs, anywhere) is not None


@SOME
@given(st.data())
def test_the_ledger_is_as_before_and_the_plan_the_same_in_any_order(data):
    ledger, jobs, preemptor = data.draw(elastic_crowds())
    before = ledger.held.copy()
    one = reclaim.plan_reclaim(ledger, preemptor, jobs, anywhere)
    assert one == reclaim.plan_reclaim(ledger, preemptor, data.draw(st.permutations(jobs)), anywhere)
    assert all((getattr(ledger.held, each) == getattr(before, each)).all() for each in ("used", "firm", "claims"))
