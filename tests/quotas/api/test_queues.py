"""Queues over REST: looked at, held, drained, stopped, opened, each with who did it and why."""

import pytest

from fleet.changes.journal import Action
from fleet.models import Event, JournalEntry
from quotas import signals
from quotas.models import Queue

pytestmark = pytest.mark.django_db
QUEUES = "/api/v1/queues/"


def url(path, verb=""):
    return f"{QUEUES}{Queue.objects.get(path=path).name}/{verb}"


def test_it_lists_the_queues_of_the_tree(as_viewer, tree):
    shown = as_viewer.get(QUEUES).json()["results"]
    assert [(each["path"], each["state"]) for each in shown] == [
        ("root", "Open"), ("root/a", "Open"), ("root/b", "Open"),
    ]  # fmt: skip


def test_it_tells_in_the_tree_who_holds_a_queue_and_why(as_admin, as_viewer, tree):
    as_admin.post(url("root/a", "hold/"), {"comment": "maintenance"}, format="json")
    shown = {each["path"]: each for each in as_viewer.get("/api/v1/quota/tree/").json()["nodes"]}["root/a"]
    told = shown["queue_state"], shown["queue_state_by"], shown["queue_comment"], shown["may_run"]
    assert told == ("Held", "ada", "maintenance", False)


@pytest.mark.parametrize(("verb", "state"), [("hold", "Held"), ("drain", "Draining"), ("stop", "Stopped")])
def test_it_holds_drains_and_stops_and_opens_again(as_admin, tree, verb, state, django_capture_on_commit_callbacks):
    heard = []
    signals.queue_changed.connect(lambda sender, state, **_: heard.append(state), weak=False, dispatch_uid="test")
    with django_capture_on_commit_callbacks(execute=True):
        shown = as_admin.post(url("root/a", f"{verb}/"), {"comment": "maintenance"}, format="json").json()
        assert (shown["state"], shown["state_by"], shown["state_comment"]) == (state, "ada", "maintenance")
        assert as_admin.post(url("root/a", "open/")).json()["state"] == "Open"
    signals.queue_changed.disconnect(dispatch_uid="test")
    assert heard == [state, "Open"]
    assert "maintenance" in Event.objects.get(reason=f"Queue{state}").message
    assert JournalEntry.objects.filter(kind="Queue", action=Action.MODIFIED).count() == 2


def test_it_lets_leads_hold_their_own_queues_only(as_lead, tree):
    assert as_lead.post(url("root/b", "hold/")).status_code == 200
    refused = as_lead.post(url("root/a", "hold/"))
    assert refused.status_code == 403 and "lea leads what is below root/b only" in refused.json()["detail"]
