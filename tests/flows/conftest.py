"""Stories through the real parts: see tests/support/."""

from tests.support.fixtures import unswept, worker, world

__all__ = ["unswept", "worker", "world"]
