"""The closed table from reasons to remedies, and the limits that would have to be raised."""

import pytest

from jobs.core.explain import remedies
from jobs.core.explain.remedies import REMEDIES, Change, Kind, all_of, find_borrowers, limits_to_raise
from jobs.core.reasons import Code
from jobs.services.inspect import remedies as building
from quotas.core.accounts.ledger import Charge
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import JOBS, cpu, ledger, occupied, quota, running

FLEET = {"cpu": 10_000}


def charge(cores: int, leaf: str = "root/a", **fields) -> Charge:
    return Charge(leaf, of_job(cpu(cores)), **fields)


@pytest.mark.parametrize("code", list(Code))
def test_it_has_a_row_for_every_reason_and_knows_how_to_build_each_remedy(code) -> None:
    kinds = REMEDIES[code]
    assert len(set(kinds)) == len(kinds)
    assert kinds == remedies.PLACEMENT or set(kinds) <= building.BUILDERS.keys() | set(remedies.PLACEMENT)


@pytest.mark.parametrize("code", [c for c in Code if Kind.RAISE_QUOTA in REMEDIES[c] or Kind.ALL_OF in REMEDIES[c]])
def test_it_advises_nothing_of_clusters_alone_at_the_quotas_gate(code) -> None:
    assert not {Kind.ADD_NODES, Kind.UNCORDON, Kind.TOLERATE, Kind.SELECT} & set(REMEDIES[code])


def test_it_raises_every_limit_on_the_way_that_is_too_low() -> None:
    found = ledger(10, quota("a", 2, 4), quota("b", 2, 10))
    occupied(found, running("x", "a", 3))
    assert [
        (each.path, each.bound, each.amounts) for each in limits_to_raise(found, charge(2), FLEET, {}, empty=False)
    ] == [("root/a", "max", {"cpu": 5000})]
    occupied(found, running("y", "b", 6))
    told = limits_to_raise(found, charge(4), {"cpu": 20_000}, {}, empty=False)
    assert [(each.path, each.amounts["cpu"]) for each in told] == [("root/a", 7000), ("root", 13_000)]
    assert [each.kind for each in all_of(told)] == [Kind.ALL_OF]


def test_it_never_raises_a_limit_above_the_fleet_but_any_number_of_jobs() -> None:
    found = ledger(10, quota("a", 2, {"cpu": 10, JOBS: 1}))
    occupied(found, running("x", "a", 8))
    assert limits_to_raise(found, charge(4), FLEET, {}, empty=False) == []
    [slots] = limits_to_raise(found, charge(1), FLEET, {}, empty=False)
    assert (slots.path, slots.amounts, slots.message) == ("root/a", {JOBS: 2}, "raise max of root/a to 2 jobs")


def test_it_counts_what_idle_siblings_keep_back() -> None:
    found = ledger(10, quota("a", 2, 4))
    [told] = limits_to_raise(found, charge(5), FLEET, {"root/a": 3000}, empty=True)
    assert told.amounts == {"cpu": 8000}


def test_it_raises_the_min_of_who_may_not_be_preempted() -> None:
    found = ledger(10, quota("a", 2, 8))
    [told] = limits_to_raise(found, charge(3, preemptible=False), FLEET, {}, empty=False)
    assert (told.path, told.bound, told.amounts) == ("root/a", "min", {"cpu": 3000})


def test_it_names_who_borrows_below_the_node_that_is_full() -> None:
    found = ledger(10, quota("a", 2, 10), quota("b", 2, 10), quota("c", 2, 10))
    occupied(found, running("x", "b", 3), running("y", "c", 6))
    assert [(each.path, each.amount) for each in find_borrowers(found, "root", "cpu")] == [
        ("root/c", 4000),
        ("root/b", 1000),
    ]
    assert find_borrowers(found, "root/a", "cpu") == []


def test_it_hides_the_names_of_jobs_that_the_reader_may_not_see() -> None:
    jobs = (remedies.JobRef("1", "vision/a", {"cpu": 1}), remedies.JobRef("2", "speech/b", {"cpu": 2}))
    change = Change(Kind.WAIT_FOR_JOBS, "wait until vision/a, speech/b end on north", "north", jobs=jobs, count=2)
    [told] = building.shown_to([change], lambda namespace: namespace == "vision")
    assert told.message == "wait until vision/a and 1 of other teams end on north"
    assert [(each.uid, each.name, each.amounts) for each in told.jobs] == [
        ("1", "vision/a", {"cpu": 1}),
        ("", "", {"cpu": 2}),
    ]
    step = building.shown_to(all_of([change, change]), lambda namespace: False)
    assert "speech" not in str(step) and "vision" not in str(step)
