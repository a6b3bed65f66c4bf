"""``test``: the tests, on two processes, with whatever arguments pytest knows; the console first, for a browser tests it."""

import os
import subprocess
import sys

from deploy.bootstrap.console import Console
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.progress import Steps


def command(argv: list[str], home: Home, steps: Steps) -> int:
    """Its own home and no broker of the running product: a test run must not touch what the person runs."""
    if not argv:
        Console(ROOT, Environment(ROOT, steps), steps).ensure()
    env = {name: value for name, value in os.environ.items() if name not in ("CONVOY_HOME", "REDIS_URL")}
    workers = [] if any(part.startswith("-n") for part in argv) else ["-n", "2", "--dist", "loadgroup"]
    return subprocess.run([sys.executable, "-m", "pytest", *workers, *argv], cwd=ROOT, env=env, check=False).returncode
