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

from django.conf import settings
from playwright._impl._driver import compute_driver_executable, get_driver_env
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from deploy.supervisor import die_with_parent
from tests.console.builders import CHROMIUM, QUIET

VIEWPORT: ViewportSize = {"width": 1360, "height": 860}
ANCHORED = "/livez"
"""Small, and of the same origin and opener policy as the console."""
STORED = "local_storage,indexeddb,service_workers,cache_storage"
SHIFTS = """window.shifts = [];
new PerformanceObserver((seen) => {
  for (const { value, hadRecentInput, sources } of seen.getEntries()) {
    if (!hadRecentInput) shifts.push([value, sources.map(({ node }) => node?.outerHTML?.slice(0, 200))]);
  }
}).observe({ type: "layout-shift", buffered: true });"""


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

    Every page is opened by one that stays, the anchor: so all of them are in its process. In a process of its own a page
    takes twice the processor time, and in a new context three times.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._site = ""
        self._anchor: Page | None = None
        self.is_spoiled = False
        """It is not kept for the next test."""

    @property
    def context(self) -> BrowserContext | None:
        return self._anchor and self._anchor.context

    def page(self, site: str) -> Page:
        """A new one, which has loaded nothing."""
        if self._anchor is None or site != self._site:
            self._close()
            self._anchor, self._site = self._anchored(site), site
        with self._anchor.expect_popup() as opened:
            self._anchor.evaluate("() => { open('about:blank') }")
        return opened.value

    def clear(self) -> None:
        """Closes the pages and forgets cookies, permissions and what was stored."""
        if self._anchor is None or self.is_spoiled:
            self._close()
            return
        context = self._anchor.context
        for page in context.pages:
            if page is not self._anchor:
                page.close()
        stored = {"origin": self._site, "storageTypes": STORED}
        context.new_cdp_session(self._anchor).send("Storage.clearDataForOrigin", stored)
        context.clear_cookies()
        context.clear_permissions()

    def _anchored(self, site: str) -> Page:
        context = self._browser.new_context(base_url=site, viewport=VIEWPORT, reduced_motion="reduce")
        context.add_init_script(SHIFTS)
        anchor = context.new_page()
        anchor.goto(ANCHORED)
        return anchor

    def _close(self) -> None:
        if self._anchor is not None:
            self._anchor.context.close()
        self._anchor, self.is_spoiled = None, False


class KeptContexts:
    """Of one file: one for each of the people whose pages a test looks at side by side."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._by_person: dict[str, KeptContext] = {}

    def of(self, person: str) -> KeptContext:
        if person not in self._by_person:
            self._by_person[person] = KeptContext(self._browser)
        return self._by_person[person]

    def page(self, site: str, person: str, session: str) -> Page:
        """One of a person who is signed in."""
        page = self.of(person).page(site)
        page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": site}])
        return page

    def clear(self) -> None:
        """Leaves no page that anything was loaded into but the anchors."""
        for each in self._by_person.values():
            each.clear()
        kept = [each.context for each in self._by_person.values()]
        for context in self._browser.contexts:
            if context not in kept:
                context.close()
