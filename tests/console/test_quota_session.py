"""The session ends over a quota draft: it is there again, comment and all, after signing in, and meets what others saved."""

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from quotas import queries
from quotas.services import trees
from tests.console.builders import (
    GPU,
    NOON,
    apply,
    bounds,
    field,
    press_despite,
    root,
    sign_in,
    sign_in_again,
    start_tree,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def drafted(page, aside):
    """A draft with its comment, and applied when the session is over."""
    aside(start_tree)
    sign_in(page, at="/quotas")
    with page.expect_response("**/quota/tree/preview/"):  # asked later, it would end the session before Apply does
        field(page, "min", "root/speech").fill("3")
    page.get_by_label("Comment").fill("more for speech")
    aside(lambda: Session.objects.all().delete())
    press_despite(page.get_by_role("button", name="Apply", exact=True))
    expect(page.get_by_role("dialog", name="Your session has ended")).to_be_visible()
    return page


def test_it_keeps_a_draft_with_its_comment_and_applies_it(drafted, aside):
    sign_in_again(drafted)
    expect(field(drafted, "min", "root/speech")).to_have_value("3")
    expect(drafted.get_by_label("Comment")).to_have_value("more for speech")
    expect(drafted.get_by_role("alert")).to_have_count(0)
    apply(drafted, 2)
    assert aside(root)["children"][1]["min"] == {GPU: "3"}
    expect(drafted.get_by_role("listitem").filter(has_text="more for speech")).to_contain_text("in force")


def test_it_shows_what_others_saved_while_nobody_was_signed_in(drafted, aside):
    theirs = [{"op": "edit", "path": "root/speech", "set": {"max": {GPU: "5"}}}]
    aside(trees.edit, theirs, trees.Saving("eve", NOON, comment="less"))
    sign_in_again(drafted)
    told = drafted.get_by_role("alert").filter(has_text="eve has saved generation 2 in the meantime")
    expect(drafted.get_by_role("button", name="Apply", exact=True)).to_have_attribute("aria-disabled", "true")
    told.get_by_role("button", name="Put my changes on generation 2").click()
    expect(drafted.get_by_label("Comment")).to_have_value("more for speech")
    apply(drafted, 3)
    assert aside(root)["children"][1] == {"name": "speech", "namespaces": ["speech"], **bounds("3", "5")}
    assert aside(queries.tree_row).changed_by == "ada"
