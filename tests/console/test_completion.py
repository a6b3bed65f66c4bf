"""Writing a manifest by hand: what may come next is offered from the schemas, and taken with the keyboard."""

import pytest
from playwright.sync_api import expect

from tests.console.builders import sign_in, write

pytestmark = pytest.mark.django_db(transaction=True)
HEAD = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: typed
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      """


def open_submit(page):
    sign_in(page, at="/submit")
    expect(page.get_by_role("textbox", name="Manifest")).to_contain_text("PyTorchJob")


def offered(page):
    return page.get_by_role("listbox", name="Fields and values")


def take(page, *shown: str) -> None:
    """The one that is marked, once it is the one; a list answers keys only when it has stood for a moment."""
    expect(offered(page).get_by_role("option", selected=True)).to_contain_text(shown[0])
    page.wait_for_timeout(100)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_offers_what_may_come_next_to_the_keyboard(page, axe, north, scheme):
    page.emulate_media(color_scheme=scheme)
    open_submit(page)
    write(page, HEAD)
    page.keyboard.press("Control+Space")
    expect(offered(page).get_by_role("option")).to_have_text(["restartPolicystring", "templateobject"])
    expect(page.get_by_text("What becomes of a pod that ends")).to_be_visible()
    assert axe(page) == []
    page.keyboard.type("re")
    take(page, "restartPolicy")
    expect(offered(page).get_by_role("option")).to_have_text(["Always", "ExitCode", "Never", "OnFailure"])
    page.keyboard.type("On")
    take(page, "OnFailure")
    expect(page.get_by_role("textbox", name="Manifest")).to_contain_text("restartPolicy: OnFailure")


def test_its_long_lists_keep_nobody_out(page, axe, north):
    open_submit(page)
    write(page, HEAD + "template:\n        spec:\n          ")
    page.keyboard.press("Control+Space")
    expect(offered(page).get_by_role("option", selected=True)).to_contain_text("containersarray · required")
    assert axe(page) == []


def test_it_leads_from_the_kind_down_to_the_containers(page, north):
    open_submit(page)
    write(page, "apiVersion: batch/v1\n")
    page.keyboard.type("ki")
    take(page, "kind")
    take(page, "Job")
    page.keyboard.press("Enter")
    for word, name in (("sp", "spec"), ("temp", "template"), ("sp", "spec"), ("contai", "containers"), ("im", "image")):
        page.keyboard.type(word)
        take(page, name)
    page.keyboard.type("train")
    lines = page.get_by_role("textbox", name="Manifest").locator(".cm-line")
    expect(lines).to_have_text(
        [
            "apiVersion: batch/v1",
            "kind: Job",
            "spec:",
            "  template:",
            "    spec:",
            "      containers:",
            "        - image: train",
        ]
    )


def test_its_list_is_not_cut_off_at_the_edge_of_the_editor(page, north):
    open_submit(page)
    write(page, HEAD + "x\n" * 60 + "      ")
    page.keyboard.press("Control+Space")
    expect(offered(page)).to_be_in_viewport(ratio=1)
    box = offered(page).bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen = page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).shadowRoot.elementFromPoint(x, y).closest('ul')?.role", middle
    )
    assert seen == "listbox"
