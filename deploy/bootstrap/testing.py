"""``test``: the tests, on all processors, with whatever arguments pytest knows; the console first, for a browser tests it.

With ``--postgres`` they run on PostgreSQL and Valkey instead of SQLite and files (`tests.support.servers`), with ``--quick``
without those that take seconds.
"""

import os
import sys
from itertools import pairwise

from deploy.bootstrap import reaping
from deploy.bootstrap.console import Console
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.progress import Steps

SERVERS = "--postgres"
WHOLE = {"--quick", "--write-durations", "--hold-durations"}
"""Arguments with which those of all folders run, a browser's among them."""
ORDER = (
    *("-p", "tests.support.durations", "-p", "tests.support.late_collection", "-p", "tests.support.together"),
    *("--dist", "loadfile", "--no-loadscope-reorder", "-o", "console_output_style=classic"),
)
"""A file stays on one process, which alone imports it and starts what its tests share once; what takes longest first.

So do the files of a folder that share a server (`tests.support.together`).

Without a percentage: how many tests there are is known at the end.
"""


def command(argv: list[str], home: Home, steps: Steps) -> int:
    """Its own home and no broker of the running product: a test run must not touch what the person runs."""
    if WHOLE.issuperset(argv):
        Console(ROOT, Environment(ROOT, steps), steps).ensure()
    env = {name: value for name, value in os.environ.items() if name not in ("CONVOY_HOME", "REDIS_URL")}
    runner = "tests.support.servers" if SERVERS in argv else "pytest"
    argv = [part for part in argv if part != SERVERS]
    return reaping.run([sys.executable, "-m", runner, *spread(argv), *argv], cwd=ROOT, env=env)


def spread(argv: list[str]) -> list[str]:
    """The options that spread the tests over processes: over as many as ``-n`` says, in one and in their order for ``-n 0``."""
    if "-n0" in argv or ("-n", "0") in pairwise(argv):
        return []
    return [*ORDER] if any(part.startswith("-n") for part in argv) else ["-n", str(processes()), *ORDER]


def processes() -> int:
    """Five for two processors: more than half of a test's time it waits for what others do."""
    return max(2, len(os.sched_getaffinity(0)) * 5 // 2) if hasattr(os, "sched_getaffinity") else 4
