"""What may break does break here: see tests/support/."""

from tests.support.fixtures import unswept, worker, world

__all__ = ["unswept", "worker", "world"]
