"""The audit of writes through every door: who, from where, what, before and after, and what was refused."""

import json
from datetime import timedelta

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.models import AuditEntry, Grant
from fleet.services.auditing import audit, audit_chain
from fleet.services.operations import processes
from fleet.services.operations.clock_steps import StepDetector
from jobs.models import Job
from tests.support.kubectl import served
from tests.support.members import join
from tests.support.world import POLICY, pytorch_job

SECRET = yaml.safe_dump(
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"password": "hush"}}
)


def apply(client, text):
    return client.post("/api/v1/apply/", text, content_type="application/yaml")


def last(**wanted):
    return AuditEntry.objects.filter(**wanted).latest("pk")


@pytest.mark.django_db
def test_it_writes_down_who_did_what_from_where(as_admin):
    assert apply(as_admin, pytorch_job("llama")).status_code == 200
    line = last(kind="PyTorchJob")
    assert (line.actor, line.door, line.address, line.verb, line.outcome) == (
        "ada",
        "rest",
        "127.0.0.1",
        "create",
        "done",
    )
    assert (line.namespace, line.name, line.before) == ("default", "llama", None)
    assert line.after["manifest"]["spec"]["pytorchReplicaSpecs"]


@pytest.mark.django_db
def test_it_asks_no_more_for_many_new_objects_than_for_one(as_admin):
    def asked(*names):
        with CaptureQueriesContext(connection) as queries:
            assert apply(as_admin, "---\n".join(pytorch_job(name) for name in names)).status_code == 200
        return len([each for each in queries if "auditentry" in each["sql"]])

    asked("first")
    assert asked("llama") == 1
    assert asked(*(f"gpt-{n}" for n in range(20))) == 1
    assert {line.after["name"] for line in AuditEntry.objects.filter(verb="create")} >= {"llama", "gpt-0", "gpt-19"}


@pytest.mark.django_db
def test_it_keeps_only_what_an_action_changed(as_admin):
    apply(as_admin, pytorch_job("llama"))
    uid = Job.objects.get().uid
    assert as_admin.post(f"/api/v1/jobs/{uid}/suspend/").status_code == 202
    line = last(verb="suspend")
    assert (line.before["suspended"], line.after["suspended"]) == (False, True)
    assert "labels" not in line.before
    as_admin.delete(f"/api/v1/jobs/{uid}/")
    assert last(verb="delete").before["name"] == "llama"


@pytest.mark.django_db
def test_it_writes_down_what_was_refused_but_not_the_tries_of_strangers(as_viewer, as_nobody, north):
    assert as_viewer.post("/api/v1/clusters/north/cordon/").status_code == 403
    line = last()
    assert (line.actor, line.verb, line.kind, line.name, line.outcome) == (
        "sam",
        "cordon",
        "Cluster",
        "north",
        "refused",
    )
    assert "fleet-admin" in line.message
    as_nobody.post("/api/v1/clusters/north/cordon/")
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db
def test_it_writes_down_a_drain_with_what_it_changed(as_admin, as_viewer, north):
    join(north)
    assert as_admin.post("/api/v1/clusters/north/drain/").status_code == 200
    line = last()
    assert (line.actor, line.verb, line.kind, line.name, line.outcome) == ("ada", "drain", "Cluster", "north", "done")
    assert (line.before["taints"], line.after["taints"][0]["key"]) == ([], "convoy.dev/drained")
    as_viewer.post("/api/v1/clusters/north/drain/")
    assert (last().verb, last().outcome) == ("drain", "refused")


@pytest.mark.django_db
def test_it_blots_out_secrets(as_admin):
    assert apply(as_admin, SECRET).status_code == 200
    assert last().after["name"] == "key"
    assert "hush" not in json.dumps([line.after for line in AuditEntry.objects.all()])


@pytest.mark.django_db
def test_it_leaves_no_line_for_reading_or_for_what_the_fleet_does_itself(as_admin, world_of_one_change):
    as_admin.get("/api/v1/jobs/")
    assert not AuditEntry.objects.exists()


@pytest.fixture
def world_of_one_change(db):
    from jobs.services.submission import manifests, submit

    submit.apply(manifests.parse(POLICY.encode()), by="the fleet", now=timezone.now())


@pytest.mark.django_db
def test_it_forgets_what_is_old(settings):
    for age in (timedelta(0), timedelta(seconds=settings.CONVOY_RETENTION.audit_s, days=1)):
        AuditEntry.objects.create(at=timezone.now() - age, actor="ada", door="rest", verb="x", outcome="done")
    audit_chain.link_new(timezone.now())
    processes.tidy(timezone.now())
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db
def test_it_forgets_nothing_because_the_clock_has_stepped_whether_or_not_that_is_noted_yet(settings):
    detector, now, keep = StepDetector(), timezone.now(), timedelta(seconds=settings.CONVOY_RETENTION.audit_s)
    AuditEntry.objects.create(at=now, actor="ada", door="rest", verb="x", outcome="done")
    audit_chain.link_new(now + timedelta(minutes=1))
    detector.look(now, 0.0)
    ahead = now + keep + timedelta(days=35)
    processes.tidy(ahead)
    assert AuditEntry.objects.count() == 1
    detector.look(ahead, 30.0)
    processes.tidy(ahead)
    assert AuditEntry.objects.count() == 1
    over = ahead + keep
    detector.look(over, 30.0 + keep.total_seconds())
    processes.tidy(over)
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_it_knows_what_kubectl_did_and_only_tried(admin, viewer, tmp_path):
    with served(tmp_path) as kubectl:
        ada = kubectl.as_user("ada")
        ada.says("create", "--dry-run=server", "-f", "-", given=POLICY)
        assert not AuditEntry.objects.exclude(door="command").exists()
        ada.says("create", "-f", "-", given=POLICY)
        ada.says("label", "propagationpolicy", "example-policy", "team=vision")
        ada.says("delete", "propagationpolicy", "example-policy")
        kubectl.as_user("sam").refused("create", "-f", "-", given=POLICY)
    of_kubectl = AuditEntry.objects.exclude(door="command")
    lines = [(each.actor, each.door, each.verb, each.outcome) for each in of_kubectl.order_by("pk")]
    done = [("ada", "kubectl", verb, "done") for verb in ("create", "update", "delete")]
    assert lines == [*done, ("sam", "kubectl", "create", "refused")]
    changed = AuditEntry.objects.get(verb="update")
    assert "labels" not in changed.before["manifest"]["metadata"]
    assert changed.after["manifest"]["metadata"]["labels"] == {"team": "vision"}
    assert AuditEntry.objects.get(verb="delete").before["name"] == "example-policy"


@pytest.mark.django_db
def test_it_grants_no_role_in_the_admin(admin, client):
    client.force_login(get_user_model().objects.create_superuser("root", password="a long password"))
    data = {"user": admin.pk, "role": "quota-admin", "namespace": ""}
    assert client.post("/admin/fleet/grant/add/", data).status_code == 403
    assert not Grant.objects.exists()
    assert client.get("/admin/fleet/auditentry/").status_code == 200


def test_it_blots_out_telling_variables_and_what_was_last_applied():
    spec = {"env": [{"name": "WANDB_API_KEY", "value": "hush"}, {"name": "EPOCHS", "value": "3"}]}
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "hush", "note": "kept"}
    shown = audit.blotted(json.dumps({"spec": spec, "annotations": notes}))
    assert "hush" not in json.dumps(shown) and "kept" in json.dumps(shown)
    assert shown["spec"]["env"][1]["value"] == "3"
