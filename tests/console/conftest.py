"""A real browser before the real product: web process, workers, watcher and a simulated member."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.console.browser import KeptContext, KeptContexts, browser_server, connected
from tests.console.builders import CHROMIUM, PATIENCE_MS
from tests.support.fixtures import unswept, worker, world
from tests.support.people import person
from tests.support.web import served
from tests.support.world import POLICY

expect.set_options(timeout=PATIENCE_MS)

__all__ = ["unswept", "worker", "world"]

AXE = settings.ROOT / "frontend/web/node_modules/axe-core/axe.min.js"
FINDINGS = """async () => {
  const moves = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(moves.map(({ finished }) => finished));
  return (await axe.run({ resultTypes: ["violations"] })).violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}"""
"""What moves is looked at when it has come to rest: half faded in, everything is too pale."""
ANSWERS = ("401 (Unauthorized)", "422 (Unprocessable Entity)")
"""What the browser itself writes when the session has ended, and when what somebody typed is refused."""
NO_TREE = "/api/v1/quota/tree/"
"""Not there, says the browser, while nobody has made one."""
UNSEEN = 0.01
"""Of the window, moved: less than a line of text."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    built = (settings.CONSOLE_DIST / "index.html").is_file()
    missing = (
        "the console is not built"
        if not built
        else "there is neither chromium-headless-shell nor chromium"
        if CHROMIUM is None
        else ""
    )
    for item in items:
        if missing and "tests/console/" in item.path.as_posix():
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one browser for all tests; each has a context of its own in it."""
    with browser_server(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture(scope="module")
def connection(chromium: str) -> Iterator[Browser]:
    """One for a file. Its loop runs on this thread, beside which Django would refuse to empty the database."""
    with pytest.MonkeyPatch.context() as patch, connected(chromium) as made:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield made


@pytest.fixture(scope="module")
def contexts_of_file(connection: Browser) -> KeptContexts:
    return KeptContexts(connection)


@pytest.fixture
def contexts(contexts_of_file: KeptContexts) -> Iterator[KeptContexts]:
    yield contexts_of_file
    contexts_of_file.clear()


@pytest.fixture
def kept(contexts: KeptContexts) -> KeptContext:
    """That of the test's own page."""
    return contexts.of("ada")


@pytest.fixture
def browser(connection: Browser, contexts: KeptContexts) -> Browser:
    """For a test that needs a context of its own."""
    return connection


@pytest.fixture
def spoiled(kept: KeptContext) -> None:
    """For a test that changes its context in a way that cannot be undone, as with a clock that stands still."""
    kept.is_spoiled = True


@pytest.fixture
def aside(transactional_db: None) -> Iterator[Callable[..., Any]]:
    """Runs what touches the database on a thread of its own: the browser's driver occupies this one with its loop."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda run, *args, **named: thread.submit(run, *args, **named).result()
        thread.submit(connections.close_all).result()


@pytest.fixture
def axe() -> Callable[[Page], list[Any]]:
    """What of a page keeps people out: serious and critical findings, each with where it is."""
    if not AXE.is_file():
        pytest.skip("axe is not there: npm ci")
    return findings


def findings(page: Page) -> list[Any]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    return list(page.evaluate(FINDINGS))


@pytest.fixture
def still() -> Callable[[Page], AbstractContextManager[None]]:
    """While news comes in, nothing that was there moves."""

    @contextmanager
    def watched(page: Page) -> Iterator[None]:
        page.evaluate("shifts.length = 0")
        yield
        assert [each for each in page.evaluate("shifts") if each[0] > UNSEEN] == []

    return watched


@pytest.fixture
def site(world: Any) -> Iterator[str]:
    """The address of the product's web process."""
    with served() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def page(site: str, aside: Callable[..., Any], kept: KeptContext) -> Iterator[Page]:
    """A page that has loaded nothing yet.

    Fails the test when the browser's console has a word to say, or what the story ends with keeps people out.
    """
    person("ada", superuser=True)
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        url = message.location["url"]
        half_typed = "400 (Bad Request)" in message.text and "/api/v1/apply/preview" in url
        foreseen = half_typed or any(answer in message.text for answer in ANSWERS) or url.endswith(NO_TREE)
        if message.type in ("error", "warning") and not foreseen:
            complaints.append(message.text)

    shown = kept.page(site)
    shown.set_default_timeout(PATIENCE_MS)
    shown.on("console", listen)
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    yield shown
    found = findings(shown) if AXE.is_file() else []
    assert (complaints, found) == ([], [])


@pytest.fixture
def north(world: Any, page: Page, aside: Callable[..., Any]) -> None:
    aside(world.member, "north", 4)
    aside(world.apply, POLICY)
