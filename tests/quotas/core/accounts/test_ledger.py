"""What is in use: charged once, given back whole, and as before after every "what if"."""

import pytest

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees.amounts import UNLIMITED, of_job
from tests.quotas.core.builders import JOBS, LEND, cpu, ledger, quota, tree


@pytest.fixture
def found() -> Ledger:
    return ledger(10, quota("team", 4, 10, quota("a", 4, 10, attributes={LEND: '{"cpu": 1}'}), quota("b")))


def charge(leaf="a", cores=2.0, **fields):
    return Charge(f"root/team/{leaf}", of_job(cpu(cores)), **fields)


def test_it_charges_the_whole_path(found):
    found.charge(charge())
    assert [found.used(path) for path in ("root", "root/team", "root/team/a")] == [{"cpu": 2000, JOBS: 1}] * 3
    assert found.used("root/team/b") == {"cpu": 0, JOBS: 0}


def test_it_is_as_before_after_a_release(found):
    before = found.held.copy()
    for each in (charge(), charge("b", preemptible=False), charge(cores=0.5)):
        found.charge(each)
    for each in (charge("b", preemptible=False), charge(), charge(cores=0.5)):
        found.release(each)
    assert all((getattr(found.held, each) == getattr(before, each)).all() for each in ("used", "firm", "claims"))


def test_it_gives_nothing_back_that_was_not_charged(found):
    found.charge(charge())
    with pytest.raises(ValueError, match="root/team/a gives back more"):
        found.release(charge(preemptible=False))
    with pytest.raises(ValueError, match="gives back more"):
        found.release(charge("b"))
    assert found.used("root")["cpu"] == 2000


def test_it_does_not_count_round_the_corner(found):
    full = Charge("root/team/a", {"cpu": UNLIMITED})
    found.charge(full)
    with pytest.raises(OverflowError):
        found.charge(charge("b"))
    assert found.used("root/team/b")["cpu"] == 0


def test_it_undoes_what_if_even_when_it_fails(found):
    found.charge(charge())
    with pytest.raises(ValueError, match="gives back"), found.charged([charge(), charge("b")]):
        assert found.used("root")["cpu"] == 6000
        with found.released([charge(), charge()]):
            assert found.used("root")["cpu"] == 2000
        with found.released([charge("b"), charge("b")]):
            pass
    assert found.used("root") == {"cpu": 2000, JOBS: 1}


def test_it_is_built_from_what_runs():
    found = Ledger.from_charges(tree(9, quota("a")), [Charge("root/a", of_job(cpu(1)))] * 3)
    assert found.used("root") == {"cpu": 3000, JOBS: 3}
