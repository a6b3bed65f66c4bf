"""Test processes that one process starts share nothing: neither a home nor a number of the broker."""

import os
import subprocess
import sys

TELL = "import deploy.config.testing as t, os; print(t.REDIS_URL, os.environ['CONVOY_HOME'], flush=True)"
START = f"""
import os, subprocess, sys
{TELL}
for worker in ("gw0", "gw1"):
    subprocess.run([sys.executable, "-c", {TELL!r}], env={{**os.environ, "PYTEST_XDIST_WORKER": worker}}, check=True)
"""


def test_each_test_process_has_a_broker_and_a_home_of_its_own():
    own = ("PYTEST_XDIST_WORKER", "CONVOY_TEST_BROKER", "DATABASE_URL", "CONVOY_TEST_TEMPLATE")
    env = {name: value for name, value in os.environ.items() if name not in own}
    env |= {"REDIS_URL": "redis://127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-c", START], env=env, capture_output=True, text=True, check=True, timeout=180
    )
    brokers, homes = zip(*(line.split() for line in done.stdout.splitlines()), strict=True)
    assert brokers == ("redis://127.0.0.1:1/0", "redis://127.0.0.1:1/0", "redis://127.0.0.1:1/1")
    assert len(set(homes)) == 3
