"""A min stated for a team alone, with nothing for its queues, is kept from the first pass on."""

from quotas.core.accounts.ledger import Charge
from quotas.core.queues.fair_share import plan_admission
from quotas.core.queues.order import Unit
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import NOON, ledger, names, quota, unit


def test_it_lends_nothing_that_a_team_behind_its_first_job_was_promised():
    """Else the borrower starts, and is stopped in the next cycle for the small one."""
    teams = quota("a", 8, 20, quota("x", 0, 20)), quota("b", 12, 20, quota("y", 0, 20))
    waiting = [unit("J3", "a/x", 14, priority=1), unit("J7", "a/x", 4), unit("B", "b/y", 17)]
    assert names(plan_admission(ledger(20, *teams), waiting).admitted) == ["J3", "J7"]


def test_it_does_not_count_as_borrowing_what_nobody_is_promised():
    """The root states memory, and no queue is promised any of it."""
    found = ledger({"cpu": 20, "memory": "100Gi"}, quota("a", 8, 20), quota("b", 0, 20))
    charge = Charge("root/a", of_job({"cpu": 8000, "memory": 90 * 2**30}))
    waiting = [unit("b1", "b", 16, priority=9), Unit("a1", "a1", charge, 0, NOON)]
    assert names(plan_admission(found, waiting).admitted) == ["a1"]
