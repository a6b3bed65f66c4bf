"""Stories of the quota tree's admin page in a real browser: edited, refused beside the field, dragged, taken back."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from fleet.models import Grant
from quotas import queries
from quotas.core.ledger import Charge
from quotas.core.order import Unit
from quotas.core.reclaim import Running
from quotas.models import QuotaGrant, QuotaRevision
from quotas.services import documents, impact, trees, usage
from tests.console.browser import connected
from tests.console.builders import PATIENCE_MS, session_of
from tests.quotas.core.builders import manifest, quota
from tests.support.people import person
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)
expect.set_options(timeout=PATIENCE_MS)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
EXPECTED = ("404 (Not Found)", "409 (Conflict)", "422 (Unprocessable")
"""What the browser itself writes: for a favicon there is none of, and for refusals the page tells about."""
AXE = settings.ROOT / "frontend" / "web" / "node_modules" / "axe-core" / "axe.min.js"
TREE = "/admin/quotas/quotatree/"


def gpus(low: int, high: int) -> tuple[dict, dict]:
    return {GPU: low}, {GPU: high}


def start() -> None:
    """vision (4 of at most 8, with a night quota below) and speech (2 of at most 6), of 8 in all."""
    vision = quota("vision", *gpus(4, 8), quota("night", *gpus(1, 8), namespaces=["night"]))
    speech = quota("speech", *gpus(2, 6), namespaces=["speech"])
    trees.apply(manifest(quota("root", *gpus(8, 8), vision, speech)), by="grace", now=NOON)
    for name, role in (("ada", Grant.Role.QUOTA_ADMIN), ("lea", Grant.Role.VIEWER)):
        person(name, (role, ""))
    get_user_model().objects.update(is_staff=True)
    QuotaGrant.objects.create(user=get_user_model().objects.get(username="lea"), path="root/vision")


@pytest.fixture
def visit(aside: Callable[..., Any], chromium: str) -> Iterator[Callable[[str], Page]]:
    """The page as somebody sees it. Fails the test when the browser's console has a word to say."""
    aside(start)
    complaints: list[str] = []

    def listen(said: ConsoleMessage) -> None:
        if said.type == "error" and not any(each in said.text for each in EXPECTED):
            complaints.append(said.text)

    with served() as port, connected(chromium) as browser:

        def open_as(name: str) -> Page:
            url = f"http://127.0.0.1:{port}"
            context = browser.new_context(base_url=url, viewport={"width": 1500, "height": 950})
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": aside(session_of, name), "url": url}])
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.on("console", listen)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(TREE)
            expect(row(page, "speech")).to_be_visible()
            return page

        yield open_as
    assert complaints == []


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("treegrid").get_by_role("row").filter(has=page.locator(".q-label", has_text=name))


def field(page: Page, key: str, path: str) -> Locator:
    return page.get_by_label(f"{key} {GPU} of {path}", exact=True)


def enter(page: Page, key: str, path: str, value: str) -> None:
    field(page, key, path).fill(value)
    field(page, key, path).press("Tab")


def root() -> dict:
    return dict(queries.row().manifest["spec"]["root"])


def test_it_saves_an_edited_number_and_shows_it_in_the_history(visit, aside):
    page = visit("ada")
    enter(page, "min", "root/speech", "3")
    page.get_by_label("Comment").fill("more for speech")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    assert aside(root)["children"][1]["min"] == {GPU: "3"}
    entry = page.get_by_role("listitem").filter(has_text="more for speech")
    entry.locator("summary").click()
    expect(entry).to_contain_text(f"root/speech min.{GPU}: 2 → 3")
    assert aside(QuotaRevision.objects.first).source == "admin"


def test_it_says_what_is_wrong_beside_the_field(visit, aside):
    page = visit("ada")
    enter(page, "min", "root/speech", "7")
    cell = page.get_by_role("gridcell").filter(has=field(page, "min", "root/speech"))
    expect(cell).to_contain_text("more than its max 6")
    expect(field(page, "min", "root/speech")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("the quota tree is not applied")
    assert aside(queries.row).generation == 1


def test_it_moves_a_quota_by_dragging_it_onto_another(visit, aside):
    page = visit("ada")
    row(page, "night").locator(".q-label").drag_to(row(page, "speech").locator(".q-label"))
    expect(page.get_by_text("root/vision/night is now root/speech/night.")).to_be_visible()
    expect(page.get_by_role("treegrid")).to_contain_text("only leaves have namespaces")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("undone")
    row(page, "night").locator(".q-label").drag_to(row(page, "root").first.locator(".q-label"))
    enter(page, "max", "root/night", "2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    assert [each["name"] for each in aside(root)["children"]] == ["vision", "speech", "night"]


def test_it_does_the_same_by_keyboard(visit, aside):
    page = visit("ada")
    row(page, "root").first.focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(row(page, "night")).to_be_focused()
    page.keyboard.press("Alt+ArrowLeft")
    expect(page.get_by_text("root/vision/night is now root/night.")).to_be_visible()
    expect(row(page, "night")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(row(page, "night")).to_be_focused()


def test_it_simulates_who_gains_and_who_is_taken_back(visit, monkeypatch):
    charge = [Charge("root/vision/night", {GPU: 3})] * 2
    running = [Running(f"PyTorchJob night/j{i}", each, 0, NOON) for i, each in enumerate(charge)]
    waiting = [Unit("PyTorchJob speech/tts", "speech/tts", Charge("root/speech", {GPU: 4}), 0, NOON)]
    monkeypatch.setattr(impact, "_sources", [lambda tree: (running, waiting)])
    monkeypatch.setattr(usage, "_admitted", [lambda: charge])
    page = visit("ada")
    expect(row(page, "night")).to_contain_text("6 used")
    enter(page, "min", "root/speech", "4")
    page.get_by_role("button", name="Simulate").click()
    taken = page.get_by_role("region", name="Would be taken back")
    expect(taken).to_contain_text("makes room for PyTorchJob speech/tts")


def test_it_goes_back_to_an_earlier_generation(visit, aside):
    page = visit("ada")
    enter(page, "max", "root/speech", "5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    first = page.get_by_role("listitem").filter(has_text="grace")
    first.locator("summary").click()
    first.get_by_role("button", name="Go back to generation 1").click()
    page.get_by_role("dialog").get_by_role("button", name="Go back").click()
    expect(page.get_by_text("Generation 1 is in force again, as generation 3.")).to_be_visible()
    assert aside(root)["children"][1]["max"] == {GPU: 6}


def test_it_lets_a_lead_edit_below_their_node_and_not_above(visit, aside):
    page = visit("lea")
    expect(field(page, "min", "root/vision")).to_be_disabled()
    expect(page.get_by_role("button", name="Move root/speech")).to_have_count(0)
    enter(page, "min", "root/vision/night", "2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    assert aside(queries.row).changed_by == "lea"


def test_it_tells_the_second_of_two_who_save(visit, aside):
    page = visit("ada")
    enter(page, "max", "root/speech", "5")
    aside(
        trees.edit,
        [{"op": "edit", "path": "root", "set": {"max": {GPU: 9}, "min": {GPU: 9}}}],
        trees.Saving("eve", NOON),
    )
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("eve changed the")
    assert aside(queries.row).generation == 2


def test_it_imports_a_file_once_it_was_looked_at(visit, aside):
    page = visit("ada")
    page.get_by_role("button", name="Import YAML").click()
    page.get_by_label("The tree as YAML").fill("kind: Nonsense")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("dialog")).to_contain_text("spec.root: is required")
    text = documents.write(aside(queries.row).manifest).replace(
        "max:\n        nvidia.com/gpu: 6", "max:\n        nvidia.com/gpu: 5"
    )
    page.get_by_label("The tree as YAML").fill(text)
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("dialog")).to_contain_text("root/speech")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Imported as generation 2.")).to_be_visible()


def test_it_exports_the_file_that_it_imports(visit, aside, tmp_path):
    page = visit("lea")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export YAML").click()
    download.value.save_as(tmp_path / "tree.yaml")
    text = (tmp_path / "tree.yaml").read_text()
    assert download.value.suggested_filename.endswith(".yaml")
    assert documents.write(aside(queries.row).manifest) == text and "kind: ElasticQuotaTree" in text


def test_it_follows_what_comes_to_use_and_what_others_save(visit, aside, monkeypatch):
    page = visit("ada")
    expect(row(page, "night")).to_contain_text("0 used")
    monkeypatch.setattr(usage, "_admitted", [lambda: [Charge("root/vision/night", {GPU: 3})]])
    expect(row(page, "night")).to_contain_text("3 used")
    change = [{"op": "edit", "path": "root/speech", "set": {"max": {GPU: 5}}}]
    aside(trees.edit, change, trees.Saving("eve", NOON))
    expect(page.get_by_role("status")).to_contain_text("eve changed the tree meanwhile")
    expect(field(page, "max", "root/speech")).to_have_value("5")


def test_it_lets_a_lead_move_nothing_out_of_their_node(visit, aside):
    page = visit("lea")
    row(page, "night").locator(".q-label").drag_to(row(page, "speech").locator(".q-label"))
    assert page.get_by_text("is now root/speech/night").count() == 0
    assert aside(queries.row).generation == 1


def test_it_adds_names_and_removes_quotas(visit, aside):
    page = visit("ada")
    page.get_by_role("button", name="Add a quota below root/vision", exact=True).click()
    page.get_by_role("dialog").get_by_label("Name").fill("day")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    enter(page, "max", "root/vision/day", "3")
    page.get_by_role("button", name="Settings of root/vision/day").click()
    page.get_by_label("weight").fill("2")
    page.get_by_label("Namespaces, one a line").fill("day shift")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("button", name="Remove root/vision/night").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    wanted = {"name": "day", "max": {GPU: "3"}, "namespaces": ["day", "shift"], "attributes": {"weight": "2"}}
    assert aside(root)["children"][0]["children"] == [wanted]


@pytest.mark.skipif(not AXE.is_file(), reason="axe is not there: npm ci")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_has_nothing_that_keeps_people_out(visit, scheme):
    page = visit("ada")
    page.evaluate("scheme => document.documentElement.classList.toggle('dark', scheme === 'dark')", scheme)
    enter(page, "min", "root/speech", "7")
    expect(page.get_by_role("treegrid")).to_contain_text("more than its max 6")
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "async () => (await axe.run('.q-page')).violations.map((v) => [v.id, v.nodes.map((n) => n.html)])"
    )
    assert found == []
