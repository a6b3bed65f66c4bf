"""Statements of what Convoy does, each a test named by its number: 1.2 is TFJobs on Volcano, 1.3 GPU topology, and so on."""

from tests.support.fixtures import unswept, worker, world

__all__ = ["unswept", "worker", "world"]
