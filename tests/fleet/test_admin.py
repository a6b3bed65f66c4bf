"""The admin: every list renders with as many queries for many rows as for few, and shows no secret."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from fleet.models import Cluster, Event, Grant, Hold, Node, Pod, Token
from fleet.services.clusters import clusters
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work
from tests.fleet.builders import SECRET, fill
from tests.support.members import kubeconfig, members, north

__all__ = ["members", "north"]
pytestmark = pytest.mark.django_db
LISTED = (Cluster, Node, Pod, Event, Hold, Token, Grant, Job, Policy, Binding, Work, Attempt, Dependent)
QUERIES = 9
"""Measured: 5 to 8 a list, the same for 3 rows as for 12."""


@pytest.fixture
def desk(client, db):
    client.force_login(User.objects.create_superuser("root"), backend="fleet.api.sign_in.passwords.PasswordBackend")
    return client


def listing(model) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def act(desk, model, action, row):
    return desk.post(listing(model), {"action": action, "_selected_action": [row.pk]}, follow=True)


@pytest.mark.parametrize("model", LISTED, ids=lambda model: model.__name__)
def test_it_lists_many_rows_with_few_queries_and_no_secret(desk, model, django_assert_max_num_queries):
    for number in range(12):
        fill(number)
    with django_assert_max_num_queries(QUERIES):
        page = desk.get(listing(model))
    assert page.status_code == 200
    assert SECRET not in page.content.decode()


@pytest.mark.parametrize("model", LISTED, ids=lambda model: model.__name__)
def test_it_shows_one_row_without_its_secret(desk, model):
    fill(1)
    row = model.objects.first()
    page = desk.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk]))
    assert page.status_code == 200
    assert SECRET not in page.content.decode()
    assert getattr(row, "digest", "no digest here") not in page.content.decode()


def test_it_cordons_and_uncordons_a_cluster(desk):
    fill(1)
    cluster = Cluster.objects.get()
    act(desk, Cluster, "cordon", cluster)
    assert Cluster.objects.get().cordoned
    act(desk, Cluster, "uncordon", cluster)
    assert not Cluster.objects.get().cordoned


def test_it_opens_a_drained_cluster(desk):
    fill(1)
    clusters.drain(Cluster.objects.get(), by="ada", now=timezone.now())
    act(desk, Cluster, "uncordon", Cluster.objects.get())
    assert not Cluster.objects.get().drained


def test_it_revokes_a_token(desk):
    fill(1)
    act(desk, Token, "revoke", Token.objects.get())
    assert Token.objects.get().revoked_at is not None


def test_it_suspends_resumes_and_deletes_jobs(desk):
    fill(1)
    job = Job.objects.get()
    act(desk, Job, "suspend", job)
    assert Job.objects.get().state == Job.State.SUSPENDED
    act(desk, Job, "resume", job)
    assert Job.objects.get().state == Job.State.QUEUED
    act(desk, Job, "remove", job)
    assert not Job.objects.filter(deleting_at__isnull=True).exists()


def test_it_tells_why_a_job_cannot_be_resumed(desk):
    fill(1)
    page = act(desk, Job, "resume", Job.objects.get())
    assert "the job is not suspended" in page.content.decode()


@pytest.mark.django_db(transaction=True)
def test_it_joins_a_cluster_from_a_pasted_kubeconfig(desk, north):
    page = desk.post(reverse("admin:fleet_cluster_add"), {"name": "north", "kubeconfig": kubeconfig(north)})
    assert (page.status_code, Cluster.objects.get().state) == (302, "Ready")


def test_it_refuses_a_kubeconfig_with_a_plugin_beside_its_field(desk):
    plugin = "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {exec: {command: sh}}}]\n"
    page = desk.post(reverse("admin:fleet_cluster_add"), {"name": "north", "kubeconfig": plugin})
    assert page.status_code == 200
    assert page.context["adminform"].form.errors
    assert not Cluster.objects.exists()


def test_it_keeps_people_without_a_role_from_joining(client):
    user = User.objects.create(username="charlie", is_staff=True)
    client.force_login(user, backend="fleet.api.sign_in.passwords.PasswordBackend")
    assert client.post(reverse("admin:fleet_cluster_add"), {"name": "north", "kubeconfig": "x"}).status_code == 403
