"""How many random examples a law is tried with: a few in each test run, many in ``make check-full``."""

import os

from hypothesis import settings

QUICK = 25
IS_FULL = os.environ.get("CONVOY_HYPOTHESIS") == "full"

settings.register_profile("full", max_examples=100, deadline=None)
settings.register_profile("quick", max_examples=QUICK, deadline=None)


def load() -> None:
    """For the laws that state no number of their own."""
    settings.load_profile("full" if IS_FULL else "quick")


def examples(full: int) -> int:
    return full if IS_FULL else min(full, QUICK)
