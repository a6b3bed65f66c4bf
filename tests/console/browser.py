"""One Chromium for many tests: a server of Playwright's that starts it once, and a connection to it for each file of tests.

Playwright's own loop occupies the thread that it is used from, and much besides Django refuses to work in such a thread. So a
connection lasts for a file at most, and what lasts for the session is a process.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright._impl._driver import compute_driver_executable, get_driver_env
from playwright.sync_api import Browser, sync_playwright

from deploy.supervisor import die_with_parent
from tests.console.builders import CHROMIUM, QUIET


@contextmanager
def browser_server(folder: Path) -> Iterator[str]:
    """Its address."""
    options = folder / "options.json"
    options.write_text(json.dumps({"executablePath": CHROMIUM, "args": list(QUIET), "host": "127.0.0.1"}))
    tied = (sys.executable, "-I", "-S", die_with_parent.__file__, str(int(signal.SIGTERM)), str(os.getpid()))
    command = [*tied, *compute_driver_executable(), "launch-server", "--browser", "chromium", "--config", str(options)]
    with subprocess.Popen(command, env=get_driver_env(), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert address.startswith("ws://"), address
        yield address
        server.terminate()


@contextmanager
def connected(address: str) -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.connect(address)
        yield browser
        browser.close()
