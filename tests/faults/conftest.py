"""What may break does break here: see tests/support/."""

from tests.support.fixtures import worker, world

__all__ = ["worker", "world"]
