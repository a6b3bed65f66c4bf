"""Schedules that found something, by name: each is run again by the tests, on the database on which it failed.

A seed is not the whole of it: which thread comes first is up to the machine. Each has a test of its own beside the code
that was mended; these schedules show that the product as a whole stands where it fell.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    seed: int
    database: str
    what: str


FOUND = (
    Found(0, "postgres", "a job that succeeded while it made room kept the attempt Reclaimed and the work Suspended"),
    Found(2, "postgres", "a request for a cycle was taken back when the watcher lost its member right after a commit"),
    Found(9, "postgres", "a worker killed while it suspended a copy that had succeeded left its claim for good"),
    Found(
        18,
        "postgres",
        "workers stood still for half a minute after PostgreSQL was killed: each error was drawn with all variables",
    ),
    Found(21, "postgres", "the same after the broker was killed"),
    Found(23, "postgres", "two requests that applied the same new policy: 500 for the second"),
    Found(25, "postgres", "workers stood still after PostgreSQL was killed, beside a member that did not answer"),
)
