"""Laws of reclaim on random trees and random streams: what was promised can be had, no more is taken than needed, and it ends."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core import reclaim
from quotas.core.admission import Admitted, ask
from quotas.core.ledger import Ledger
from quotas.core.settling import Job, settle
from tests.quotas.core import forests
from tests.quotas.core.builders import NOON, names

SOME = settings(max_examples=150, deadline=None)


def anywhere(_gone):
    return True


@SOME
@given(st.data())
def test_it_comes_to_rest_and_stays_there(data):
    """No-flap: whatever runs and waits, admission and reclaim in turn come to an end, and then do nothing more."""
    tree = data.draw(forests.trees(preempts=True))
    ledger, jobs = Ledger(tree), {}
    for _ in range(data.draw(st.integers(1, 3))):
        jobs |= {unit.id: Job(unit) for unit in data.draw(forests.units(tree, prefix=f"s{len(jobs)}-"))}
        made = settle(ledger, jobs.values(), NOON)
        jobs |= made.running
        stopped = {key for key in jobs if key not in made.running}
        jobs |= {key: replace(jobs[key], started_at=None) for key in stopped}
        again = settle(ledger, jobs.values(), NOON)
        assert again.reclaims == [] and again.running.keys() == made.running.keys()
        for key in [key for key in made.running if data.draw(st.booleans())]:
            ledger.release(jobs.pop(key).unit.charge)
