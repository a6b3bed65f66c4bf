"""PersistentVolumeClaims at the fleet have the phase that GitOps controllers and `kubectl wait` wait for.

Argo CD: Bound is healthy, Pending progressing, anything else unknown. kstatus: all but Bound is in progress.
"""

import json

import pytest
import yaml
from django.utils import timezone

from jobs.models import Dependent, Work
from jobs.services.lifecycle import volume_claims
from tests.jobs.services.claims import claim, job
from tests.support import books
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kubectl(admin, tmp_path):
    with served(tmp_path) as door:
        yield door.as_user("ada")


def test_a_claim_is_bound_once_a_cluster_has_it_and_watches_are_told(kubectl):
    books.a_cluster("north")
    books.apply(claim(), job("llama", "ckpt"))
    books.cycle()
    assert kubectl.says("get", "pvc", "--no-headers").split()[:2] == ["ckpt", "Pending"]
    watching = ("get", "pvc", "-w", "--no-headers", "--output-watch-events")
    with kubectl.running(*watching) as watch:
        assert "Pending" in watch.stdout.readline()
        now, rows, work = timezone.now(), list(Dependent.objects.all()), Work.objects.get()
        volume_claims.bind(work, books.job("llama"), rows, now, anywhere=False)
        assert watch.stdout.readline().split()[:3] == ["MODIFIED", "ckpt", "Bound"]
        volume_claims.forget(work, books.job("llama"), "ckpt", now)
        assert watch.stdout.readline().split()[:3] == ["MODIFIED", "ckpt", "Pending"]
    kubectl.says("wait", "--for=jsonpath={.status.phase}=Pending", "pvc/ckpt", "--timeout=5s")


def test_a_claim_whose_data_is_reached_from_anywhere_waits_for_no_cluster(kubectl):
    books.apply(claim())
    shared = yaml.safe_load(claim())
    shared["metadata"]["annotations"] = {"convoy.dev/data-placement": "Anywhere"}
    kubectl.says("apply", "-f", "-", given=yaml.safe_dump(shared))
    assert json.loads(kubectl.says("get", "pvc", "ckpt", "-o", "json"))["status"] == {"phase": "Bound"}


def test_what_a_writer_says_of_the_phase_does_not_count_and_makes_no_difference(kubectl):
    text = yaml.safe_dump({**yaml.safe_load(claim()), "status": {"phase": "Bound"}})
    kubectl.says("create", "-f", "-", given=text)
    shown = json.loads(kubectl.says("get", "pvc", "ckpt", "-o", "json"))
    assert shown["status"] == {"phase": "Pending"}
    kubectl.says("replace", "-f", "-", given=json.dumps(shown))
    for manager in ("argocd-controller", "kustomize-controller"):
        side = ("--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-")
        kubectl.says("apply", *side, given=claim())
        done = kubectl.tries("diff", *side, given=claim())
        assert (done.returncode, done.stdout) == (0, "")
