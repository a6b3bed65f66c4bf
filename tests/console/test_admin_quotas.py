"""The console's quota editor as a page of the Django admin: edited, refused, dragged, imported; as accessible as there."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from fleet.models import Grant
from quotas import queries
from quotas.models import QuotaGrant, QuotaRevision
from quotas.services import documents, trees
from tests.console.browser import KeptContexts
from tests.console.builders import GPU, NOON, PATIENCE_MS, apply, field, root, session_of, settled, start_tree
from tests.support.people import person
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)
EXPECTED = ("404 (Not Found)", "409 (Conflict)", "422 (Unprocessable")
"""What the browser itself writes: for a favicon there is none of, and for refusals the page tells about."""
AXE = settings.ROOT / "frontend" / "web" / "node_modules" / "axe-core" / "axe.min.js"
TREE = "/admin/quotas/quotatree/"


def start() -> None:
    start_tree()
    for name, role in (("ada", Grant.Role.QUOTA_ADMIN), ("lea", Grant.Role.VIEWER)):
        person(name, (role, ""))
    get_user_model().objects.update(is_staff=True)
    QuotaGrant.objects.create(user=get_user_model().objects.get(username="lea"), path="root/vision")


@pytest.fixture
def visit(aside: Callable[..., Any], contexts: KeptContexts) -> Iterator[Callable[[str], Page]]:
    """The page as somebody sees it. Fails the test when the browser's console has a word to say."""
    aside(start)
    complaints: list[str] = []

    def listen(said: ConsoleMessage) -> None:
        if said.type == "error" and not any(each in said.text for each in EXPECTED):
            complaints.append(said.text)

    with served() as port:

        def open_as(name: str) -> Page:
            page = contexts.page(f"http://127.0.0.1:{port}", name, aside(session_of, name))
            page.set_viewport_size({"width": 1500, "height": 950})
            page.set_default_timeout(PATIENCE_MS)
            page.on("console", listen)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(TREE)
            expect(row(page, "root/speech")).to_be_visible()
            return page

        yield open_as
    assert complaints == []


def row(page: Page, path: str) -> Locator:
    return page.locator(f'[role=row][data-path="{path}"]')


def test_it_saves_an_edited_number_and_says_in_the_history_that_it_was_done_here(visit, aside):
    page = visit("ada")
    field(page, "min", "root/speech").fill("3")
    page.get_by_label("Comment").fill("more for speech")
    apply(page, 2)
    assert aside(root)["children"][1]["min"] == {GPU: "3"}
    entry = page.get_by_role("region", name="History").get_by_role("listitem").filter(has_text="more for speech")
    entry.locator("summary").click()
    expect(entry).to_contain_text("root/speech min nvidia.com/gpu")
    assert aside(QuotaRevision.objects.first).source == "admin"


def test_it_says_what_is_wrong_beside_the_field(visit, aside):
    page = visit("ada")
    field(page, "min", "root/speech").fill("7")
    expect(row(page, "root/speech")).to_contain_text("min 7 GPU is more than its max 6")
    expect(field(page, "min", "root/speech")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Apply", exact=True)).to_have_attribute("aria-disabled", "true")
    assert aside(queries.tree_row).generation == 1


def test_it_moves_a_quota_by_dragging_it_and_by_keyboard(visit, aside):
    page = visit("ada")
    settled(page)
    row(page, "root/vision/night").get_by_role("button", name="Move root/vision/night").drag_to(row(page, "root"))
    expect(row(page, "root/night")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "root/vision/night")).to_be_visible()
    row(page, "root/vision/night").focus()
    page.keyboard.press("Alt+ArrowLeft")
    expect(row(page, "root/night")).to_be_focused()
    apply(page, 2)
    assert [each["name"] for each in aside(root)["children"]] == ["vision", "speech", "night"]


def test_it_lets_a_lead_edit_below_their_node_and_not_above(visit, aside):
    page = visit("lea")
    expect(field(page, "min", "root/vision")).to_have_attribute("readonly", "")
    field(page, "min", "root/vision/night").fill("2")
    apply(page, 2)
    assert aside(queries.tree_row).changed_by == "lea"


def test_it_imports_a_file_once_its_changes_were_shown(visit, aside):
    page = visit("ada")
    page.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog", name="Import a quota tree")
    dialog.get_by_label("The tree as YAML").fill("kind: Nonsense")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("spec.root: is required")
    expect(dialog.get_by_role("button", name="Apply")).to_be_disabled()
    text = documents.write(aside(queries.tree_row).manifest)
    dialog.get_by_label("The tree as YAML").fill(text.replace("nvidia.com/gpu: 6", "nvidia.com/gpu: 5"))
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("root/speech")
    dialog.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    assert aside(root)["children"][1]["max"] == {GPU: 5}


def test_it_exports_the_file_that_it_imports(visit, aside, tmp_path):
    page = visit("lea")
    with page.expect_download() as download:
        page.get_by_role("link", name="YAML").click()
    download.value.save_as(tmp_path / "tree.yaml")
    assert documents.write(aside(queries.tree_row).manifest) == (tmp_path / "tree.yaml").read_text()


def test_it_follows_what_others_save(visit, aside):
    page = visit("ada")
    change = [{"op": "edit", "path": "root/speech", "set": {"max": {GPU: 5}}}]
    aside(trees.edit, change, trees.Saving("eve", NOON))
    expect(field(page, "max", "root/speech")).to_have_value("5")


def test_it_leads_to_the_jobs_of_a_queue_in_the_console(visit):
    page = visit("ada")
    row(page, "root/speech").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/jobs"))
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()


@pytest.mark.skipif(not AXE.is_file(), reason="axe is not there: npm ci")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_has_nothing_that_keeps_people_out(visit, scheme):
    page = visit("ada")
    page.evaluate("scheme => document.documentElement.classList.toggle('dark', scheme === 'dark')", scheme)
    field(page, "min", "root/speech").fill("7")
    expect(row(page, "root/speech")).to_contain_text("more than its max 6")
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "async () => (await axe.run('#quota-editor')).violations.map((v) => [v.id, v.nodes.map((n) => n.html)])"
    )
    assert found == []
