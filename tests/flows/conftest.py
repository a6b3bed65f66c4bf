"""Stories through the real parts: see tests/support/."""

from tests.support.fixtures import worker, world

__all__ = ["worker", "world"]
