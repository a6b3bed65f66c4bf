"""The console in Chinese and Indonesian: no page shows a sentence of the server untranslated, and every code has its words."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from jobs.core.reasons import Code
from jobs.models import Job
from tests.console.builders import a_tree, go, is_explained, settled
from tests.quotas.core.builders import quota
from tests.support.books import GPU
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LOCALES = settings.ROOT / "frontend" / "web" / "src" / "locales"
SENTENCES = {"message", "detail", "basis", "ends", "refusals", "warnings", "reason"}
"""Fields of answers that hold sentences; what people wrote themselves (comments) is theirs."""
PAGES = (
    "/fleet",
    "/fleet/north",
    "/jobs",
    "/quotas",
    "/events",
    "/incidents",
    "/policies",
    "/audit",
    "/system",
    "/submit",
)


def sentences(answer: Any, key: str = "") -> Iterator[str]:
    """Texts of three words and more."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield from sentences(value, name)
    elif isinstance(answer, list):
        for value in answer:
            yield from sentences(value, key)
    elif isinstance(answer, str) and key in SENTENCES and len(answer.split()) > 2:
        yield answer


LISTEN = """window.heard = [];
const send = window.fetch;
window.asked = 0;
window.fetch = async (...request) => {
  asked += 1;
  try {
    const response = await send(...request);
    if ((response.headers.get("content-type") ?? "").includes("json")) heard.push(await response.clone().json());
    return response;
  } finally {
    asked -= 1;
  }
};"""


class Listener:
    """Remembers the sentences of every answer of the API, on all pages."""

    def __init__(self, page: Page) -> None:
        self.heard: set[str] = set()
        page.add_init_script(LISTEN)

    def untranslated(self, page: Page) -> list[str]:
        for answer in page.evaluate("heard"):
            self.heard.update(sentences(answer))
        shown = flat(page.locator("body").inner_text())
        return sorted(text for text in self.heard if flat(text) in shown)


def flat(text: str) -> str:
    """As compared: without case, and without the difference between `nvidia.com/gpu` and GPUs."""
    return " ".join(re.sub(r"nvidia\.com/gpu|\bgpus?\b", "gpu", text.lower()).split())


@pytest.mark.parametrize("language", ["zh-CN", "id"])
def test_it_shows_no_sentence_of_the_server_untranslated(world, page, aside, north, language):
    listener = Listener(page)
    aside(a_tree, quota("a", {GPU: 2}, {GPU: 4}, namespaces=["default"]))
    page.goto("/")
    page.evaluate("language => localStorage.setItem('convoy-language', language)", language)
    page.reload()
    page.locator("input[name=username]").fill("ada")
    page.locator("input[name=password]").fill("wrong")
    page.locator("button[type=submit]").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert listener.untranslated(page) == [] and listener.heard
    page.locator("input[name=password]").fill("a long password")
    page.locator("button[type=submit]").click()
    expect(page.get_by_role("main")).to_be_visible()
    aside(world.apply, pytorch_job("runs", workers=0, gpus=2, duration="10h"))
    aside(world.expect, "runs", "Running")
    for name, gpus in (("over", 3), ("giant", 40)):
        aside(world.apply, pytorch_job(name, workers=0, gpus=gpus, duration="10h"))
        aside(world.until, lambda name=name: is_explained(name), f"{name} has a reason")
    uids = aside(lambda: [str(uid) for uid in Job.objects.order_by("name").values_list("uid", flat=True)])
    for address in PAGES:
        go(page, address)
        settled(page)
        page.wait_for_function("asked === 0")
        assert listener.untranslated(page) == [], address
    for address in (f"/jobs/{uid}?tab={tab}" for uid in uids for tab in ("overview", "placement", "events")):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert listener.untranslated(page) == [], address


def texts(language: str) -> dict[str, Any]:
    return dict(json.loads((LOCALES / f"{language}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("language", ["en", "zh-CN", "id"])
def test_it_has_words_for_every_code(language):
    known = texts(language)
    words = {*(name.partition("_")[0] for name in known["reason"]), *known["verdict"]}
    assert {code.value for code in Code} - words == set()
