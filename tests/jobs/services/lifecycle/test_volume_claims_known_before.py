"""Jobs that were there before the locations of claims were kept are bound to the clusters where their copies are."""

from importlib import import_module

import pytest
from django.apps import apps

from jobs import snapshot
from jobs.models import ClaimLocation, Job
from tests.jobs.services.claims import claim, job
from tests.support import books

pytestmark = pytest.mark.django_db


def test_jobs_from_before_are_bound_to_the_cluster_of_their_copy():
    books.a_cluster("north")
    books.apply(claim(), job("llama", "ckpt", "not-ours"), job("plain"))
    books.cycle()
    books.sent()
    books.apply(job("waits", "ckpt", gpus=8))
    for each in Job.objects.all():
        roles = [{key: value for key, value in role.items() if key != "claims"} for role in each.roles]
        Job.objects.filter(pk=each.pk).update(roles=roles)
    import_module("jobs.migrations.0016_claim_locations").bind_known_claims(apps, None)
    assert [str(each.cluster.name) for each in ClaimLocation.objects.filter(name="ckpt")] == ["north"]
    assert not ClaimLocation.objects.exclude(name="ckpt").exists()
    bound = {gang.name: gang.bound_to for gang in snapshot.load_gangs(Job.objects.all())}
    ckpt = ("default/ckpt", ("north",))
    assert bound == {"default/llama": (ckpt,), "default/waits": (ckpt,), "default/plain": ()}
