"""Every page of the admin opens for an administrator, shows no credential, and costs few queries."""

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.world import POLICY, pytorch_job

CIPHERTEXT = "gAAAA"
CREDENTIAL = "&#x27;hidden&#x27;"
"""The token of the fixture's cluster, as a page would print its field."""
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


@pytest.fixture
def browser(db, admin) -> Client:
    admin.is_staff = True
    admin.save(update_fields=["is_staff"])
    client = Client()
    client.force_login(admin)
    return client


@pytest.fixture
def jobs(north) -> None:
    texts = [POLICY, *(pytorch_job(f"j{i}") for i in range(10))]
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="test", now=timezone.now())
    Job.objects.update(cluster=north)


def place(model, page: str, *args) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_it_lists_without_a_storm_of_queries(browser, jobs, model):
    with CaptureQueriesContext(connection) as asked:
        assert browser.get(place(model, "changelist")).status_code == 200
    assert len(asked) <= 14, [each["sql"][:100] for each in asked]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_it_shows_one_without_its_secrets(browser, jobs, model):
    row = model.objects.first()
    if row is not None:
        answer = browser.get(place(model, "change", row.pk))
        assert answer.status_code == 200
        assert not [each for each in (CIPHERTEXT, CREDENTIAL) if each in answer.content.decode()]


def test_it_suspends_chosen_jobs(browser, jobs):
    chosen = [str(job.pk) for job in Job.objects.all()[:2]]
    browser.post(place(Job, "changelist"), {"action": "suspend", "_selected_action": chosen})
    assert Job.objects.filter(suspended=True).count() == 2
