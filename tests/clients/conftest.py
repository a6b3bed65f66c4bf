"""The world of the tests, and the clients that several files share."""

from pathlib import Path

import pytest

from tests.clients.environments import environment
from tests.support.fixtures import unswept, worker, world

__all__ = ["dlrover", "unswept", "worker", "world"]


@pytest.fixture(scope="session")
def dlrover() -> Path:
    """A virtual environment with the stock DLRover; skips where it cannot be installed."""
    return environment("dlrover")
