"""How many random examples a law is tried with: a few in each test run, many in ``make check-full``.

Those of a test run are the same each time, so that a change fails by what it changed; `make check-full` tries new ones.
How long it takes to draw them says nothing about the law. Hypothesis mixes constants of the project's modules that are
loaded into what it draws, so that examples with the same seed differ by which tests ran before in the same process: a run of
tests has none of them, a long one has.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

QUICK = 25
IS_FULL = os.environ.get("CONVOY_HYPOTHESIS") == "full"
_IS_FUZZ = bool(float(os.environ.get("CONVOY_FUZZ_MINUTES", "0")))

SLOW = (HealthCheck.too_slow,)

settings.register_profile("full", max_examples=100, deadline=None, suppress_health_check=SLOW)
settings.register_profile("quick", max_examples=QUICK, deadline=None, suppress_health_check=SLOW, derandomize=True)


def load() -> None:
    """For the laws that state no number of their own."""
    settings.load_profile("full" if IS_FULL else "quick")
    if not (IS_FULL or _IS_FUZZ):
        none = Constants()
        providers._get_local_constants = lambda: none


def examples(full: int) -> int:
    return full if IS_FULL else min(full, QUICK)
