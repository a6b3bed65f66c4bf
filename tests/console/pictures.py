"""Takes the pictures of the docs from a running product: every page, light and dark, into ``docs/images``.

``python3 manage.py up --detach``, then ``.venv/bin/python -m tests.console.pictures`` with its home in ``CONVOY_HOME``. Submits
a few jobs of its own first, so that there is something to see. Look at each picture before it is committed.
"""

import argparse
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from deploy.bootstrap.home import ROOT

IMAGES = ROOT / "docs" / "images"
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}}}
spec:
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      template:
        metadata: {{annotations: {{convoy.dev/duration: 10h}}}}
        spec:
          containers:
            - {{name: pytorch, image: example.com/train, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}
    Worker: {{<<: *role, replicas: {workers}}}
"""
JOBS = (
    JOB.format(name="llama-pretrain", workers=3, gpus=4),
    JOB.format(name="resnet-sweep", workers=1, gpus=1),
    JOB.format(name="giant", workers=63, gpus=8),
)
GPU, COUNT = "nvidia.com/gpu", "kube-queue/max-jobs"
QUOTAS = {
    "root": {"min": {GPU: "60"}, "max": {GPU: "60"}},
    "root/child-1": {"min": {GPU: "16"}, "max": {GPU: "40"}},
    "root/child-2": {"min": {GPU: "16"}, "max": {GPU: "48", COUNT: "10"}},
}
SIZE = {"width": 1360, "height": 860}


def pages(shown: Page) -> dict[str, str]:
    """Name → address."""
    jobs = {each["name"]: each["id"] for each in shown.request.get("/api/v1/jobs/?page_size=100").json()["results"]}
    clusters = shown.request.get("/api/v1/clusters/").json()["results"]
    plain = (
        "fleet",
        "jobs",
        "quotas",
        "submit",
        "join",
        "policies",
        "failovers",
        "events",
        "audit",
        "access",
        "system",
    )
    return {
        **{name: f"/{name}" for name in plain},
        "cluster": f"/fleet/{clusters[0]['name']}",
        "job": f"/jobs/{jobs['llama-pretrain']}",
        "waiting": f"/jobs/{jobs['giant']}",
    }


def prepare(shown: Page) -> None:
    """Quotas of the fleet's size, and jobs below them."""
    tree = shown.request.get("/api/v1/quota/tree/").json()
    edits = [{"op": "edit", "path": path, "set": bounds} for path, bounds in QUOTAS.items()]
    changes = {"generation": tree["generation"], "changes": edits, "comment": "as large as the fleet"}
    for method, path, sent in (("PATCH", "quota/tree/", json.dumps(changes)), ("POST", "apply/", "\n---\n".join(JOBS))):
        token = next(each["value"] for each in shown.context.cookies() if each["name"] == "csrftoken")
        kind = "json" if method == "PATCH" else "yaml"
        headers = {"Content-Type": f"application/{kind}", "X-CSRFToken": token, "Referer": shown.url}
        answer = shown.request.fetch(f"/api/v1/{path}", method=method, data=sent, headers=headers)
        assert answer.ok, answer.text()


def opened(browser: Browser, url: str, password: str, scheme: Any) -> Page:
    shown = browser.new_page(base_url=url, viewport=SIZE, color_scheme=scheme)
    shown.goto("/")
    shown.get_by_label("User name").fill("admin")
    shown.get_by_label("Password", exact=True).fill(password)
    shown.get_by_role("button", name="Sign in").click()
    shown.get_by_role("heading", name="Fleet", level=1).wait_for()
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
        shown.locator("[aria-busy=true], .mantine-Skeleton-root").first.wait_for(state="hidden")
        shown.screenshot(path=IMAGES / f"{name}-{scheme}.png", animations="disabled")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("only", nargs="*", help="the pages; every one when none is named")
    asked.add_argument("--url", default=f"http://127.0.0.1:{os.environ.get('CONVOY_PORT', '8000')}")
    given = asked.parse_args()
    password = (Path(os.environ.get("CONVOY_HOME", ROOT / ".convoy")) / "admin-password").read_text().strip()
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"]) as browser,
    ):
        for scheme in ("light", "dark"):
            shown = opened(browser, given.url, password, scheme)
            if scheme == "light":
                prepare(shown)
            take(shown, scheme, given.only)


if __name__ == "__main__":
    main()
