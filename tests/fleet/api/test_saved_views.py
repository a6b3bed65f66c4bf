"""Views of lists kept under a name: one's own, and shared with those who read a namespace or the fleet."""

import pytest
from django.contrib.auth import get_user_model

from fleet.models import Grant, SavedView
from fleet.services.operations import saved_views
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/views/"


def save(client, name="mine", **more):
    body = {"list": "jobs", "name": name, "search": "state=Queued&columns=user", **more}
    return client.post(URL, body, format="json")


def names(client):
    return [each["name"] for each in client.get(URL, {"list": "jobs"}).json()["results"]]


def member(name, role, namespace=""):
    return client_of(person(name, (role, namespace)))


def test_a_view_is_its_users_own_and_is_replaced_by_its_name():
    ada, grace = member("ada", "viewer", "vision"), member("grace", "editor", "vision")
    assert save(ada).status_code == 201
    assert save(ada, search="state=Failed").json()["search"] == "state=Failed"
    assert names(ada) == ["mine"] and names(grace) == []
    key = SavedView.objects.get().pk
    assert grace.delete(f"{URL}{key}/").status_code == 404
    assert ada.delete(f"{URL}{key}/").status_code == 204 and names(ada) == []


def test_an_editor_shares_with_those_who_read_the_namespace():
    editor, reader, other = (
        member("e", "editor", "vision"),
        member("r", "viewer", "vision"),
        member("o", "viewer", "nlp"),
    )
    assert save(editor, "team", shared=True, namespace="vision").status_code == 201
    assert names(reader) == ["team"] and names(other) == []
    shown = reader.get(URL).json()["results"][0]
    assert (shown["user"], shown["shared"], shown["namespace"]) == ("e", True, "vision")
    assert reader.delete(f"{URL}{shown['id']}/").status_code == 403
    assert member("e2", "editor", "vision").delete(f"{URL}{shown['id']}/").status_code == 204


@pytest.mark.parametrize(("role", "namespace"), [("viewer", "vision"), ("editor", "nlp"), ("editor", "")])
def test_it_takes_an_editor_to_share(role, namespace):
    client = member("a", role, "vision")
    answer = save(client, shared=True, namespace=namespace)
    assert answer.status_code == 403 and "it takes the role editor" in answer.json()["detail"]
    assert not SavedView.objects.exists()


def test_a_view_for_all_is_seen_by_everybody_with_a_role_and_by_nobody_without(as_admin):
    assert save(as_admin, "all", shared=True).status_code == 201
    assert names(member("a", "viewer", "nlp")) == ["all"]
    assert names(client_of(person("without"))) == []


def test_who_lost_the_role_keeps_the_view_but_changes_what_others_see_no_more():
    client, reader = member("e", "editor", "vision"), member("r", "viewer", "vision")
    save(client, "team", shared=True, namespace="vision")
    assert names(reader) == ["team"]
    Grant.objects.filter(user__username="e").update(namespace="nlp")
    assert save(client, "team", search="x=1").status_code == 403
    assert names(client) == ["team"] and names(reader) == []


def test_the_shared_views_of_a_disabled_user_are_not_shown():
    reader = member("r", "viewer", "vision")
    save(member("e", "editor", "vision"), "team", shared=True, namespace="vision")
    get_user_model().objects.filter(username="e").update(is_active=False)
    assert names(reader) == []


def test_it_keeps_a_bounded_number(as_admin, monkeypatch):
    monkeypatch.setattr(saved_views, "MOST", 2)
    assert [save(as_admin, name).status_code for name in ("a", "b", "b", "c")] == [201, 201, 201, 422]


@pytest.mark.parametrize("wrong", [{"list": "nodes"}, {"name": ""}, {"name": "x" * 64}, {"search": "x" * 2001}])
def test_it_refuses_what_is_no_view(as_admin, wrong):
    assert save(as_admin, **{"name": "a", **wrong}).status_code == 422
