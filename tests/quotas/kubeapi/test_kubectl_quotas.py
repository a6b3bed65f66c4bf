"""The quota tree and its queues over a stock kubectl: applied, shown, refused with every field, held. No member is needed."""

import json
import re

import pytest
import yaml

from fleet.models import Grant
from quotas.models import Queue, QuotaGrant, QuotaRevision
from tests.quotas.core.builders import manifest, quota
from tests.support.kubectl import served
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
TEAMS = (quota("child-2", 4, 9, namespaces=["default"]), quota("vision", 2, 9, quota("night", 1, 9)))


def tree(*children, total=9):
    return yaml.safe_dump(manifest(quota("root", total, total, *(children or TEAMS)), name="elasticquotatree"))


@pytest.fixture
def kubectl(transactional_db, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl, admin):
    return kubectl.as_user("ada")


@pytest.fixture
def lead(kubectl):
    user = person("lea", (Grant.Role.VIEWER, "vision"))
    QuotaGrant.objects.create(user=user, path="root/vision")
    return kubectl.as_user("lea")


def test_it_prints_the_queues_as_the_documentation_does(ada):
    assert "elasticquotatree created" in ada.says("apply", "-f", "-", given=tree(TEAMS[0]))
    header, *rows = ada.says("get", "queue", "-n", "kube-queue").splitlines()
    assert header.split() == ["NAME", "AGE"]
    assert {re.sub("-[a-z0-9]{5}$", "", row.split()[0]) for row in rows} == {"root-child-2", "root"}


def test_it_applies_again_without_change_and_shows_what_is_in_use(ada):
    ada.says("apply", "-f", "-", given=tree())
    assert "unchanged" in ada.says("apply", "-f", "-", given=tree())
    shown = json.loads(ada.says("get", "eqt", "-n", "kube-system", "elasticquotatree", "-ojson"))
    assert shown["status"]["root"]["used"] == {"cpu": "0", "kube-queue/max-jobs": "0"}
    assert [each["name"] for each in shown["status"]["root"]["children"]] == ["child-2", "vision"]
    assert "child-2" in ada.says("describe", "elasticquotatree", "-n", "kube-system")
    assert QuotaRevision.objects.get().source == "kubectl"


def test_it_refuses_with_every_field_at_fault(ada):
    wrong = tree(quota("a", 20, 9), quota("b", 1, 99))
    told = ada.refused("apply", "-f", "-", given=wrong)
    assert "spec.root.children[0].min.cpu" in told and "spec.root.children[1].max.cpu" in told
    assert not Queue.objects.exists()


def test_it_changes_one_number_by_a_patch(ada):
    ada.says("apply", "-f", "-", given=tree())
    patch = '[{"op": "replace", "path": "/spec/root/children/0/min/cpu", "value": "5"}]'
    ada.says("patch", "eqt", "elasticquotatree", "-n", "kube-system", "--type=json", "-p", patch)
    assert [each.generation for each in QuotaRevision.objects.all()] == [2, 1]


def test_it_deletes_the_tree_and_its_queues(ada):
    ada.says("apply", "-f", "-", given=tree())
    ada.says("delete", "eqt", "elasticquotatree", "-n", "kube-system")
    assert "No resources found" in ada.says("get", "queue", "-n", "kube-queue")


def test_it_holds_and_opens_a_queue(ada):
    ada.says("apply", "-f", "-", given=tree())
    queue = Queue.objects.get(path="root/child-2")

    def stop(policy):
        return ada.says(
            "patch", "queue", queue.name, "-n", "kube-queue", "--type=merge", "-p",
            json.dumps({"spec": {"stopPolicy": policy}}),
        )  # fmt: skip

    for policy, state in (("Hold", "Held"), ("Drain", "Draining"), ("HoldAndDrain", "Stopped"), ("None", "Open")):
        assert "patched" in stop(policy)
        assert state in ada.says("get", "queue", queue.name, "-n", "kube-queue", "-owide")
    told = ada.refused(
        "patch", "queue", queue.name, "-n", "kube-queue", "--type=merge", "-p", '{"spec":{"stopPolicy":1}}'
    )
    assert "spec.stopPolicy" in told


def test_it_lets_a_lead_change_what_is_below_them_and_nothing_else(ada, lead):
    ada.says("apply", "-f", "-", given=tree())
    below = tree(TEAMS[0], quota("vision", 2, 9, quota("night", 2, 9)))
    assert "configured" in lead.says("apply", "-f", "-", given=below)
    above = tree(TEAMS[0], quota("vision", 5, 9, quota("night", 2, 9)))
    told = lead.refused("apply", "-f", "-", given=above)
    assert "may not change root/vision" in told and "leads what is below root/vision only" in told


def test_it_shows_the_tree_to_viewers_and_lets_them_change_nothing(ada, kubectl, viewer):
    ada.says("apply", "-f", "-", given=tree())
    sam = kubectl.as_user("sam")
    assert "elasticquotatree" in sam.says("get", "eqt", "-n", "kube-system")
    assert "it takes the role quota-admin" in sam.refused("delete", "eqt", "elasticquotatree", "-n", "kube-system")


def test_it_shows_changes_of_queues_as_they_come(ada):
    ada.says("apply", "-f", "-", given=tree())
    queue = Queue.objects.get(path="root/child-2")
    with ada.running("get", "queue", "-n", "kube-queue", "-w", "--no-headers", "--output-watch-events") as watching:
        listed = [watching.stdout.readline().split()[0] for _ in range(4)]
        ada.says(
            "patch", "queue", queue.name, "-n", "kube-queue", "--type=merge", "-p", '{"spec":{"stopPolicy":"Hold"}}'
        )
        assert watching.stdout.readline().split()[:2] == ["MODIFIED", queue.name]
        ada.says("delete", "eqt", "elasticquotatree", "-n", "kube-system")
        gone = {tuple(watching.stdout.readline().split()[:2]) for _ in range(4)}
    assert listed == ["ADDED"] * 4 and ("DELETED", queue.name) in gone
