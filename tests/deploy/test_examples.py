"""The examples of a run of tests are the same, whichever modules its process loaded before."""

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from jobs.core.topology.network import OVERLAP
from tests.support import examples


@pytest.mark.skipif(examples.IS_FULL, reason="they are new each time")
def test_it_draws_no_constant_of_a_module_that_was_loaded():
    drawn = []

    @seed(1)
    @settings(max_examples=1_000, database=None)
    @given(st.lists(st.floats(), min_size=20, max_size=20))
    def draw(floats):
        drawn.extend(floats)

    draw()
    assert drawn and OVERLAP not in drawn, "a float that nothing else draws"
