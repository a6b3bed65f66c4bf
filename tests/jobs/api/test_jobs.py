"""Jobs over REST: what is shown to whom, what may be done when, and how a refusal looks."""

from datetime import UTC, datetime

import pytest

from fleet.models import Cluster, Pod
from jobs.kinds import registry
from jobs.models import Binding, Job
from jobs.services.lifecycle import gang_fields
from jobs.services.submission import manifests, submit
from tests.jobs.api.builders import names, submitted, url
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RESULT = "{north:0,[{master 1} {worker 2}]}"


def test_it_shows_only_jobs_of_visible_namespaces(as_admin, as_editor, as_viewer):
    mine, theirs = submitted("llama"), submitted("whisper", "speech")
    assert (names(as_editor), names(as_viewer)) == (["llama"], ["whisper"])
    assert set(names(as_admin)) == {"llama", "whisper"}
    assert as_editor.get(url(mine)).status_code == 200
    for more in ("", "events/", "attempts/", "pods/", "logs/"):
        assert as_editor.get(url(theirs, more)).status_code == 404


def test_it_filters_searches_and_orders(as_admin):
    for name in ("a", "b", "c"):
        submitted(name)
    Job.objects.filter(name="b").update(state="Running", priority=5)
    assert names(as_admin, "?state=Running") == ["b"]
    assert names(as_admin, "?state=Running&state=Queued&ordering=name") == ["a", "b", "c"]
    assert names(as_admin, "?kind=pytorchjob&ordering=-priority,name") == ["b", "a", "c"]
    assert names(as_admin, "?search=c&namespace=vision") == ["c"] and names(as_admin, "?cluster=x") == []


@pytest.mark.parametrize("query", ["?state=Nonsense", "?suspended=\x00", "?page=0", "?page=99999999999999999999999"])
def test_it_refuses_queries_that_make_no_sense(as_admin, query):
    answer = as_admin.get(f"/api/v1/jobs/{query}")
    assert answer.status_code in (200, 404, 422) and (answer.status_code == 200 or "detail" in answer.json())


def test_it_tells_a_job_whole(as_admin, north):
    submit.apply(
        manifests.parse(POLICY.replace("metadata: {", "metadata: {namespace: vision, ").encode()), by="t", now=NOW
    )
    job = submitted("llama")
    Binding.objects.create(job=job, cluster=north, attempt=1, result=RESULT, scheduled_at=NOW)
    told = as_admin.get(url(job)).json()
    assert (told["id"], told["state"], told["gpus"], told["reason"]["code"]) == (
        str(job.uid),
        "Queued",
        3,
        "WaitingForScheduler",
    )
    assert told["policy"] == {"kind": "PropagationPolicy", "namespace": "vision", "name": "example-policy"}
    assert (told["binding"]["cluster"], told["binding"]["result"]) == ("north", RESULT)
    assert told["actions"]["resume"] == {"allowed": False, "reason": "the job is not suspended"}
    assert told["manifest"]["kind"] == "PyTorchJob" and [role["replicas"] for role in told["roles"]] == [1, 2]
    assert "hidden" not in str(told)


def test_it_suspends_and_resumes(as_editor):
    job = submitted("llama")
    answer = as_editor.post(url(job, "suspend/"))
    assert (answer.status_code, answer.json()["state"]) == (202, "Suspended")
    assert as_editor.post(url(job, "suspend/")).status_code == 409
    assert as_editor.post(url(job, "resume/")).json()["state"] == "Queued"
    lines = as_editor.get(url(job, "events/")).json()["results"]
    assert [each["reason"] for each in lines] == ["Submitted", "Suspended", "Resumed"]


def test_it_resizes_a_running_job(as_editor, as_viewer):
    job = submitted("llama")
    kind = registry.kind_of(job.api_version, job.kind)
    job.manifest["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 4}
    gang_fields.fill(job, kind, kind.read(job.manifest))
    job.state, job.attempt = Job.State.RUNNING, 1
    job.save()
    answer = as_editor.post(url(job, "resize/"), {"replicas": 1}, format="json")
    assert (answer.status_code, answer.json()["size"]) == (202, {"worker": {"replicas": 1, "min": 1, "max": 4}})
    answer = as_editor.post(url(job, "resize/"), {"role": "worker", "replicas": 3}, format="json").json()
    assert (answer["size"]["worker"]["replicas"], answer["resize"]["sizes"]) == (1, {"worker": 3})
    for body, words in (
        ({"replicas": 5}, "5 is above the max"),
        ({"replicas": 0}, "0 is below the min"),
        ({"role": "master", "replicas": 2}, "only worker is"),
        ({"replicas": "many"}, "replicas"),
        ({}, "replicas"),
    ):
        refused = as_editor.post(url(job, "resize/"), body, format="json")
        assert refused.status_code == 422 and words in str(refused.json())
    assert as_viewer.post(url(job, "resize/"), {"replicas": 1}, format="json").status_code in (403, 404)


def test_it_deletes(as_editor):
    job = submitted("llama")
    answer = as_editor.delete(url(job))
    assert answer.status_code == 202 and answer.json()["deleting_at"]
    assert as_editor.get(url(job)).status_code == 404


def test_it_lets_a_viewer_look_and_not_touch(as_viewer):
    job = submitted("whisper", "speech")
    assert as_viewer.get(url(job)).status_code == 200
    for answer in (as_viewer.post(url(job, "suspend/")), as_viewer.delete(url(job))):
        assert answer.status_code == 403 and "editor" in answer.json()["detail"]


def test_it_shows_pods(as_editor, north):
    job = submitted("llama")
    Pod.objects.create(
        cluster=north, namespace="vision", name="llama-master-0", uid="1", job_uid=job.uid, attempt=1, role="master",
        phase="Running", ready_containers=1, created_at=NOW, node="n1",
    )  # fmt: skip
    [pod] = as_editor.get(url(job, "pods/")).json()["results"]
    assert (pod["name"], pod["cluster"], pod["node"], pod["ready"]) == ("llama-master-0", "north", "n1", "1/1")
    assert pod["stale_since"] is None
    Cluster.objects.filter(pk=north.pk).update(state=Cluster.State.UNKNOWN, last_heartbeat=NOW)
    [pod] = as_editor.get(url(job, "pods/")).json()["results"]
    assert pod["stale_since"] == NOW.isoformat().replace("+00:00", "Z")


def test_it_says_why_there_is_no_log(as_editor):
    job = submitted("llama")
    answer = as_editor.get(url(job, "logs/"))
    assert answer.status_code == 404 and "has no master pod" in answer.json()["detail"]
    assert as_editor.get(url(job, "logs/?tail=-1&index=x")).status_code == 422


def test_it_lists_dependents_by_name_only(as_editor):
    text = "{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: vision}, stringData: {a: opensesame}}"
    submit.apply(manifests.parse(text.encode()), by="test", now=NOW)
    answer = as_editor.get("/api/v1/dependents/")
    assert answer.json()["results"][0]["name"] == "key" and "opensesame" not in answer.content.decode()
    assert as_editor.get("/api/v1/dependents/?search=opensesame").json()["results"] == []


def test_it_deletes_policies_by_the_role_they_take(as_editor, as_admin):
    text = POLICY.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")
    submit.apply(manifests.parse(text.encode()), by="test", now=NOW)
    [policy] = as_editor.get("/api/v1/policies/").json()["results"]
    assert as_editor.delete(f"/api/v1/policies/{policy['id']}/").status_code == 403
    assert as_admin.delete(f"/api/v1/policies/{policy['id']}/").status_code == 204
