"""Stories of the quota page: edited by typing, by drag, by keyboard; told its effect; applied, taken back, met by others."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from fleet.models import Cluster, Grant
from quotas import queries
from quotas.core.accounts.ledger import Charge
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Running
from quotas.models import Queue, QuotaGrant
from quotas.services import impact, trees, usage
from tests.console.browser import KeptContexts
from tests.console.builders import (
    GPU,
    JOBS,
    NOON,
    PATIENCE_MS,
    apply,
    bounds,
    field,
    root,
    session_of,
    settled,
    start_tree,
)
from tests.support.people import person
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)
EXPECTED = ("403 (Forbidden)", "404 (Not Found)", "409 (Conflict)", "422 (Unprocessable")
"""What the browser itself writes for refusals the page tells about."""
NIGHT = [Charge("root/vision/night", {GPU: 3, JOBS: 1})] * 2
TTS = Charge("root/speech", {GPU: 4, JOBS: 1})


def start() -> None:
    start_tree()
    people()


def people() -> None:
    for name, role in (("ada", Grant.Role.QUOTA_ADMIN), ("eve", Grant.Role.QUOTA_ADMIN), ("lea", Grant.Role.VIEWER)):
        person(name, (role, ""))
    QuotaGrant.objects.create(user=get_user_model().objects.get(username="lea"), path="root/vision")


def a_cluster() -> None:
    """Rows only; nothing listens at its address."""
    stamps = dict.fromkeys(("state_since", "joined_at", "synced_at", "last_heartbeat"), timezone.now())
    north = Cluster.objects.create(name="north", server="https://north.example", access={}, state="Ready", **stamps)
    north.nodes.create(name="n1", ready=True, allocatable={"cpu": 64000, "memory": 2**38, GPU: 8, "pods": 110})


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """night runs two jobs of 3 GPUs, 5 of them borrowed; speech waits for 4."""
    running = [Running(f"PyTorchJob night/j{i}", each, 0, NOON) for i, each in enumerate(NIGHT)]
    waiting = [Unit("PyTorchJob speech/tts", "speech/tts", TTS, 0, NOON)]
    monkeypatch.setattr(impact, "_sources", [lambda now: lambda tree: (running, waiting)])
    monkeypatch.setattr(usage, "_admitted", [lambda: NIGHT])
    monkeypatch.setattr(usage, "_waiting", [lambda: [TTS]])


@pytest.fixture
def visit(aside: Callable[..., Any], contexts: KeptContexts) -> Iterator[Callable[..., Page]]:
    """The page as somebody sees it. Fails the test when the browser's console has a word to say."""
    complaints: list[str] = []

    def listen(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not any(each in said.text for each in EXPECTED):
            complaints.append(said.text)

    def open_as(name: str, address: str = "/quotas", scheme: Any = "light") -> Page:
        shown = contexts.page(f"http://127.0.0.1:{port}", name, aside(session_of, name))
        shown.set_viewport_size({"width": 1440, "height": 1000})
        shown.emulate_media(color_scheme=scheme)
        shown.set_default_timeout(PATIENCE_MS)
        shown.on("console", listen)
        shown.on("pageerror", lambda error: complaints.append(str(error)))
        shown.goto(address)
        return shown

    with served() as port:
        yield open_as
    assert complaints == []


@pytest.fixture
def tree(aside: Callable[..., Any]) -> None:
    aside(start)


def row(page: Page, path: str) -> Locator:
    return page.locator(f'[role=row][data-path="{path}"]')


def handle(page: Page, bound: str, path: str) -> Locator:
    return page.get_by_role("slider", name=f"{bound} {GPU} of {path}", exact=True)


def test_it_edits_by_typing_and_sends_only_what_was_touched(visit, tree, aside):
    page = visit("ada")
    field(page, "min", "root/speech").fill("3")
    expect(page.get_by_role("region", name="What changes")).to_contain_text("root/speech min nvidia.com/gpu")
    page.get_by_label("Comment").fill("more for speech")
    with page.expect_request(lambda sent: sent.method == "PATCH") as sent:
        apply(page, 2)
    changes = [{"op": "edit", "path": "root/speech", "set": {"min": {GPU: "3"}}}]
    assert sent.value.post_data_json == {"generation": 1, "changes": changes, "comment": "more for speech"}
    assert aside(root)["children"][1]["min"] == {GPU: "3"}


def test_it_tells_what_is_wrong_while_it_is_typed(visit, tree):
    page = visit("ada")
    field(page, "min", "root/speech").fill("7")
    expect(row(page, "root/speech")).to_contain_text("min 7 GPU is more than its max 6")
    expect(row(page, "root")).to_contain_text("the quotas below have min 11 GPU together, more than its 8")
    expect(field(page, "min", "root/speech")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Apply", exact=True)).to_have_attribute("aria-disabled", "true")
    field(page, "min", "root/speech").fill("2")
    expect(page.get_by_role("button", name="Apply", exact=True)).to_have_count(0)


def test_it_edits_by_dragging_a_handle(visit, tree, aside):
    page = visit("ada")
    settled(page)
    handle(page, "max", "root/speech").scroll_into_view_if_needed()
    before = handle(page, "max", "root/speech").bounding_box()
    track = row(page, "root/speech").get_by_role("img", name="nvidia.com/gpu of root/speech").bounding_box()
    x, y = before["x"] + before["width"] / 2, before["y"] + before["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + track["width"] / 8, y, steps=4)
    expect(field(page, "max", "root/speech")).to_have_value("7")
    page.mouse.move(track["x"] + track["width"] / 8, y, steps=4)
    expect(row(page, "root/speech")).to_contain_text("min 2 GPU is more than its max 1")
    page.mouse.move(x - track["width"] / 8, y, steps=4)
    page.mouse.up()
    apply(page, 2)
    assert aside(root)["children"][1]["max"] == {GPU: "5"}


def test_it_moves_a_quota_by_dragging_it_onto_another(visit, tree, aside):
    page = visit("ada")
    settled(page)
    row(page, "root/vision/night").get_by_role("button", name="Move root/vision/night").drag_to(row(page, "root"))
    expect(row(page, "root/night")).to_be_visible()
    expect(page.get_by_role("region", name="What changes")).to_contain_text("moved")
    apply(page, 2)
    assert [each["name"] for each in aside(root)["children"]] == ["vision", "speech", "night"]


def test_it_does_all_of_it_by_keyboard(visit, tree, aside):
    page = visit("ada")
    row(page, "root").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(row(page, "root/vision/night")).to_be_focused()
    page.keyboard.press("Alt+ArrowLeft")
    expect(row(page, "root/night")).to_be_focused()
    expect(page.get_by_text("root/vision/night is now root/night.")).to_be_attached()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    expect(field(page, "min", "root/night")).to_have_value("2")
    page.keyboard.press("Escape")
    expect(row(page, "root/night")).to_be_focused()
    handle(page, "max", "root/night").focus()
    page.keyboard.press("ArrowLeft")
    apply(page, 2)
    assert aside(root)["children"][2] == {"name": "night", "namespaces": ["night"], **bounds("2", "7")}


def test_it_tells_who_starts_and_who_is_taken_back(visit, tree, busy):
    page = visit("ada")
    expect(row(page, "root/vision/night").get_by_role("img", name="6 used, 5 borrowed")).to_be_visible()
    field(page, "min", "root/speech").fill("4")
    effect = page.get_by_role("region", name="What it would do now")
    expect(effect.get_by_role("region", name="Would start")).to_contain_text("PyTorchJob speech/tts")
    expect(effect.get_by_role("region", name="Would be preempted")).to_contain_text("makes room for")


def test_it_goes_back_to_an_earlier_generation(visit, tree, aside):
    page = visit("ada")
    field(page, "max", "root/speech").fill("5")
    apply(page, 2)
    first = page.get_by_role("listitem").filter(has_text="grace")
    first.locator("summary").click()
    first.get_by_role("button", name="Go back to 1").click()
    page.get_by_role("dialog").get_by_role("button", name="Go back to 1").click()
    expect(page.get_by_text("Saved as generation 3.")).to_be_visible()
    assert aside(root)["children"][1]["max"] == {GPU: 6}


def test_it_tells_the_second_of_two_and_lets_them_go_on(visit, tree, aside):
    ada, eve = visit("ada"), visit("eve")
    field(ada, "min", "root/speech").fill("3")
    field(eve, "min", "root/speech").fill("1")
    field(eve, "max", "root/speech").fill("5")
    apply(eve, 2)
    told = ada.get_by_role("alert").filter(has_text="eve has saved generation 2 in the meantime")
    expect(told).to_contain_text("They changed some of the same things")
    expect(ada.get_by_role("button", name="Apply", exact=True)).to_have_attribute("aria-disabled", "true")
    told.get_by_role("button", name="Put my changes on generation 2").click()
    expect(field(ada, "max", "root/speech")).to_have_value("5")
    apply(ada, 3)
    assert aside(root)["children"][1] == {"name": "speech", "namespaces": ["speech"], **bounds("3", "5")}


def test_it_lets_a_lead_edit_below_their_node_and_not_above(visit, tree, aside):
    page = visit("lea")
    expect(field(page, "min", "root/vision")).to_have_attribute(
        "title", "This takes a quota admin, or the lead of a quota above"
    )
    expect(field(page, "min", "root/vision")).not_to_be_editable()
    field(page, "min", "root/vision/night").fill("2")
    apply(page, 2)
    assert aside(queries.tree_row).changed_by == "lea"


def test_it_holds_a_queue_and_leads_to_its_jobs(visit, tree, aside):
    page = visit("ada")
    speech = row(page, "root/speech")
    expect(speech.get_by_role("link", name="0 charged · 0 waiting")).to_have_attribute(
        "href", "/jobs?queue=root%2Fspeech"
    )
    speech.get_by_role("button", name="Queue of root/speech").click()
    page.get_by_role("menuitem", name="Hold").click()
    page.get_by_role("dialog").get_by_label("Comment").fill("moving the cluster")
    page.get_by_role("dialog").get_by_role("button", name="Hold").click()
    expect(speech).to_contain_text("Held")
    expect(speech.get_by_title("ada: moving the cluster")).to_be_visible()
    assert aside(Queue.objects.get, path="root/speech").state == "Held"


def test_it_adds_names_and_removes_quotas(visit, tree, aside):
    page = visit("ada")
    row(page, "root/vision").get_by_role("button", name="Actions for root/vision").click()
    page.get_by_role("menuitem", name="Add a quota below").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("day")
    page.get_by_role("dialog").get_by_role("button", name="Add a quota below").click()
    field(page, "max", "root/vision/day").fill("3")
    row(page, "root/vision/day").get_by_role("button", name="Actions for").click()
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_label("Weight").fill("2")
    page.get_by_label("What queues reclaim from each other").select_option("FairShare")
    page.get_by_label("Priority for borrowing").fill("100")
    page.get_by_role("button", name="Add a window").click()
    opens = page.get_by_role("group", name="Window 1")
    for name, text in (("Cron", "0 8 * * 1-5"), ("Open for", "10h"), ("Max while open", f"{GPU}=1")):
        opens.get_by_role("textbox", name=name).fill(text)
    page.get_by_role("button", name="Put into the draft").click()
    row(page, "root/vision/night").get_by_role("button", name="Actions for").click()
    page.get_by_role("menuitem", name="Remove").click()
    apply(page, 2)
    windows = f'[{{"cron":"0 8 * * 1-5","duration":"10h","max":{{"{GPU}":1}}}}]'
    settings = {"weight": "2", "reclaim": "FairShare", "borrowing-priority": "100", "windows": windows}
    assert aside(root)["children"][0]["children"] == [{"name": "day", "max": {GPU: "3"}, "attributes": settings}]


def test_it_says_what_to_do_next_while_there_is_no_tree(visit, aside):
    aside(people)
    page = visit("ada")
    expect(page.get_by_role("heading", name="There is no quota tree")).to_be_visible()
    expect(page.get_by_text("Join a cluster first")).to_be_visible()
    aside(start_tree)
    expect(row(page, "root/speech")).to_be_visible()


def test_it_starts_a_first_tree_with_all_the_fleet_has(visit, aside):
    aside(people)
    aside(a_cluster)
    page = visit("ada")
    page.get_by_role("button", name="Create one for the whole fleet").click()
    expect(field(page, "min", "root")).to_have_value("8")
    assert aside(root)["max"] == {GPU: "8", "cpu": "64", "memory": "256Gi"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_has_nothing_that_keeps_people_out(visit, tree, busy, axe, scheme):
    page = visit("ada", scheme=scheme)
    field(page, "min", "root/speech").fill("7")
    expect(row(page, "root/speech")).to_contain_text("is more than its max")
    assert axe(page) == []


def test_it_follows_what_others_save(visit, tree, aside):
    page = visit("ada")
    expect(field(page, "max", "root/speech")).to_have_value("6")
    change = [{"op": "edit", "path": "root/speech", "set": {"max": {GPU: "5"}}}]
    aside(trees.edit, change, trees.Saving("eve", NOON, comment="less"))
    expect(field(page, "max", "root/speech")).to_have_value("5")
    expect(page.get_by_role("listitem").filter(has_text="less")).to_contain_text("in force")


def test_it_offers_to_try_again(visit, tree):
    page = visit("ada", address="/fleet")
    page.route("**/api/v1/quota/tree/", lambda route: route.fulfill(status=403, json={"title": "Not now"}))
    page.get_by_role("link", name="Quotas").click()
    expect(page.get_by_role("alert")).to_contain_text("Not now")
    page.unroute("**/api/v1/quota/tree/")
    page.get_by_role("button", name="Try again").click()
    expect(row(page, "root/speech")).to_be_visible()
