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
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from deploy.supervisor import die_with_parent
from tests.console.builders import CHROMIUM, QUIET

VIEWPORT: ViewportSize = {"width": 1360, "height": 860}


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


class KeptContext:
    """A context for the tests of a file in turn. What the browser has loaded and compiled stays, and what a test stored goes.

    A page of the console then takes a third of the processor time that it takes in a new context.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._site = ""
        self.context: BrowserContext | None = None
        self._next: Page | None = None
        """An empty page: a browser that has none gives up its process, with what that has compiled."""
        self.is_spoiled = False
        """It is not kept for the next test."""

    def page(self, site: str) -> Page:
        if self.context is None or site != self._site:
            self._close()
            self.context, self._site = self._browser.new_context(base_url=site, viewport=VIEWPORT), site
        shown, self._next = self._next or self.context.new_page(), None
        return shown

    def clear(self) -> None:
        """Closes the pages and forgets cookies, permissions and what was stored."""
        if self.context is None or self.is_spoiled:
            self._close()
            return
        pages, self._next = self.context.pages, self.context.new_page()
        for page in pages:
            page.close()
        stored = {"origin": self._site, "storageTypes": "all"}
        self.context.new_cdp_session(self._next).send("Storage.clearDataForOrigin", stored)
        self.context.clear_cookies()
        self.context.clear_permissions()

    def _close(self) -> None:
        if self.context is not None:
            self.context.close()
        self.context, self._next, self.is_spoiled = None, None, False
