"""The browser's options, and what a person does on several pages: sign in, write a manifest, open a job."""

import shutil
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from jobs.models import Job
from quotas import queries
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.books import GPU

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The first takes a quarter less processor time: it is the engine without the rest of a browser."""

QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--renderer-process-limit=1",
)  # fmt: skip

PATIENCE_MS = 60_000
SESSION, PASSWORD = "/api/v1/session/", "a long password"


def sign_in(page: Page, name: str = "ada", *, at: str = "/") -> None:
    """The first page that is loaded; without ``at`` that is the fleet. The form is a page more, and has tests of its own."""
    page.request.get(SESSION)
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    given = {"username": name, "password": PASSWORD}
    answer = page.request.post(SESSION, data=given, headers={"X-CSRFToken": token})
    assert answer.ok, answer.text()
    page.goto(at)
    if at == "/":
        expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()


def write(page, text: str) -> None:
    box = page.get_by_role("textbox", name="Manifest")
    box.press("Control+a")
    box.press("Delete")
    page.keyboard.insert_text(text)


LEAVE = """address => {
  for (const title of document.querySelectorAll("h1")) title.setAttribute("data-left", "");
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}"""


def path(address: str) -> str:
    """The console shows the fleet at its first address."""
    found = urlsplit(address).path
    return "/fleet" if found == "/" else found


def go(page: Page, address: str) -> None:
    """To another page of the console, as by a link: to load the console anew takes three times the processor time."""
    if path(page.url) == path(address):
        page.goto(address)  # of one page's two states nothing says which is shown
    else:
        page.evaluate(LEAVE, address)
    expect(page.locator("h1:not([data-left])").first).to_be_visible(timeout=PATIENCE_MS)


ANSWERS = """const send = window.fetch;
window.fetch = (request, options) => {
  const [asked, isRefused] = JSON.parse(localStorage.getItem("answers") ?? "[]");
  const { pathname } = new URL(request.url ?? request, location.href);
  if (!asked || !pathname.startsWith(`/api/v1/${asked}`)) return send(request, options);
  if (!isRefused) return new Promise(() => {});
  return Promise.resolve(Response.json({ title: "Not now", detail: "not now" }, { status: 422 }));
};"""
"""In the page and not as a route of the browser's, which would load the console from the server again for each page."""


def answers(page: Page, asked: str = "", *, refused: bool = False) -> None:
    """What is asked of that part of the API is refused, or stays without an answer."""
    page.evaluate("answers => localStorage.setItem('answers', JSON.stringify(answers))", [asked, refused])


def settled(page: Page) -> None:
    """What the page asked for is shown."""
    expect(page.locator("[aria-busy=true], .mantine-Skeleton-root")).to_have_count(0, timeout=PATIENCE_MS)


KEYS = """keys => {
  for (const key of keys) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


def press_in_turn(page: Page, *keys: str) -> None:
    """A sequence counts when its keys follow within a moment: on a busy machine the keyboard may take longer."""
    page.evaluate(KEYS, keys)


def press_despite(button: Locator) -> None:
    """Though the dialog for the ended session may be before it already: an answer to anything else opens that, too."""
    button.dispatch_event("click")


def open_job(page: Page, name: str) -> None:
    go(page, "/jobs")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


def reason_of(name: str) -> str:
    return str((Job.objects.get(name=name).reason or {}).get("code", ""))


def is_explained(name: str) -> bool:
    return reason_of(name) not in ("", "WaitingForScheduler")


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

JOBS = "kube-queue/max-jobs"


def bounds(low: int | str, high: int | str) -> dict[str, Any]:
    return {"min": {GPU: low}, "max": {GPU: high}}


def start_tree() -> None:
    """vision (4 of at most 8, with a night quota below) and speech (2 of at most 6), of 8 in all."""
    night = {"name": "night", "namespaces": ["night"], **bounds(1, 8)}
    vision = {"name": "vision", "children": [night], **bounds(4, 8)}
    speech = {"name": "speech", "namespaces": ["speech"], **bounds(2, 6)}
    root = {"name": "root", "children": [vision, speech], **bounds(8, 8)}
    trees.apply(manifest(root), by="grace", now=NOON)


def field(page: Page, bound: str, path: str) -> Locator:
    return page.get_by_role("textbox", name=f"{bound} {GPU} of {path}", exact=True)


def root() -> dict[str, Any]:
    return dict(queries.tree_row().manifest["spec"]["root"])


def apply(page: Page, generation: int) -> None:
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text(f"Saved as generation {generation}.")).to_be_visible()


def sign_in_again(page) -> None:
    dialog = page.get_by_role("dialog", name="Your session has ended")
    dialog.get_by_label("Password", exact=True).fill("a long password")
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_be_hidden()


def session_of(name: str) -> str:
    client = Client()
    client.force_login(get_user_model().objects.get(username=name), "fleet.api.sign_in.passwords.PasswordBackend")
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def a_tree(*children: dict) -> None:
    root = {GPU: 4, "cpu": 10**6, "memory": 2**50}
    trees.apply(manifest(quota("root", root, root, *children)), by="system", now=timezone.now())
