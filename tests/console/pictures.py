"""Takes the pictures of the docs from a running product: every page, light and dark, into ``docs/images``.

``python3 manage.py up --detach``, then, when the demo's teams have been at work for some minutes,
``.venv/bin/python -m tests.console.pictures`` with its home in ``CONVOY_HOME``. Look at each picture before it is committed.
"""

import argparse
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, TimeoutError, expect, sync_playwright

from deploy.bootstrap.home import ROOT

IMAGES = ROOT / "docs" / "images"
GPU = "nvidia.com/gpu"
DRAFT = {"root/finetune": ("min", "14"), "root/speech": ("max", "24"), "root/vision": ("min", "8")}
"""What the picture of the quota editor changes; nothing of it is saved."""
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
SIZE = {"width": 1360, "height": 860}


def pages(shown: Page) -> dict[str, str]:
    """Name → address."""
    plain = (
        "fleet",
        "jobs",
        "quotas",
        "submit",
        "join",
        "policies",
        "incidents",
        "accounting",
        "reliability",
        "whatif",
        "events",
        "audit",
        "access",
        "system",
    )
    clusters = shown.request.get("/api/v1/clusters/").json()["results"]
    incidents = shown.request.get("/api/v1/incidents/").json()["results"]
    return {
        **{name: f"/{name}" for name in plain},
        **({"incident": f"/incidents/{incidents[0]['id']}"} if incidents else {}),
        "cluster": f"/fleet/{clusters[0]['name']}",
        "job": f"/jobs/{largest(shown, 'Running')}",
        "waiting": f"/jobs/{largest(shown, 'Queued')}",
    }


def largest(shown: Page, state: str) -> str:
    """The id of the largest job in this state; waits until the demo has one."""
    while True:
        listed = shown.request.get(f"/api/v1/jobs/?state={state}&ordering=-gpus&page_size=1").json()["results"]
        if listed:
            return str(listed[0]["id"])
        shown.wait_for_timeout(1_000)


def take_draft(shown: Page) -> None:
    """The quota editor with a draft in it, and what that would do."""
    shown.goto("/quotas")
    for path, (bound, value) in DRAFT.items():
        box = shown.locator(f'[role=row][data-path="{path}"]').get_by_role(
            "textbox", name=f"{bound} {GPU} of {path}", exact=True
        )
        box.fill(value)
        box.press("Tab")
    shown.get_by_text("Calculating…").wait_for(state="hidden")
    shown.wait_for_load_state("networkidle")
    shown.screenshot(path=IMAGES / "quotas.png", animations="disabled")


def opened(browser: Browser, url: str, password: str, scheme: Any) -> Page:
    shown = browser.new_page(base_url=url, viewport=SIZE, color_scheme=scheme)
    shown.goto("/")
    shown.get_by_label("User name").fill("admin")
    shown.get_by_label("Password", exact=True).fill(password)
    shown.get_by_role("button", name="Sign in").click()
    fleet = shown.get_by_role("heading", name="Fleet", level=1)
    fleet.or_(shown.get_by_role("alert")).first.wait_for(timeout=0)
    fleet.wait_for()
    with suppress(TimeoutError):
        shown.get_by_role("button", name="Close the tour").click(timeout=3_000)
    return shown


def take(shown: Page, scheme: str, only: list[str]) -> None:
    for name, address in pages(shown).items():
        if only and name not in only:
            continue
        shown.goto(address)
        shown.get_by_role("heading", level=1).wait_for()
        shown.wait_for_load_state("networkidle")
        expect(shown.locator("[aria-busy=true], .mantine-Skeleton-root")).to_have_count(0, timeout=60_000)
        shown.screenshot(path=IMAGES / f"{name}-{scheme}.png", animations="disabled")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("only", nargs="*", help="the pages; every one when none is named")
    asked.add_argument("--url", default=f"http://127.0.0.1:{os.environ.get('CONVOY_PORT', '8000')}")
    given = asked.parse_args()
    password = (Path(os.environ.get("CONVOY_HOME", ROOT / ".convoy")) / "admin-password").read_text().strip()
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        for scheme in ("light", "dark"):
            shown = opened(browser, given.url, password, scheme)
            take(shown, scheme, given.only)
            if scheme == "light" and "quotas" in (given.only or ["quotas"]):
                take_draft(shown)


if __name__ == "__main__":
    main()
