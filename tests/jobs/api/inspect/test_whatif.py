"""What would be otherwise if the fleet were: told by the scheduler's own cycle, and nothing touched."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.core.members.health import UNREACHABLE_TAINT
from fleet.models import AuditEntry, Cluster, Event, Node
from fleet.services.clusters import clusters
from jobs.models import Job
from jobs.services.follow.timeouts import health
from jobs.services.scheduling import loop
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.books import a_cluster, apply
from tests.support.people import client_of, person
from tests.support.quotas import apply_tree, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db


def ask(client, **suppose):
    return client.post("/api/v1/whatif/", suppose, format="json")


def told(client, **suppose) -> dict[str, tuple[str, str, str]]:
    found = ask(client, **suppose).json()["differences"]
    return {
        each["name"]: (each["before"]["outcome"], each["after"]["outcome"], each["after"]["cluster"]) for each in found
    }


def test_it_tells_where_a_job_would_start_and_keeps_nothing(as_admin):
    a_cluster("north", gpus=3)
    text = POLICY + "---\n" + pytorch_job("llama")
    assert told(as_admin, add_job=text) == {"llama": ("New", "Starts", "north")}
    found = ask(as_admin, add_job=text + "---\n" + pytorch_job("whisper")).json()
    assert (found["starts_after"], found["waits_after"], found["waits_before"]) == (1, 1, 0)
    assert not any(model.objects.exists() for model in (Job, Event, AuditEntry))


def test_it_tells_where_the_jobs_of_a_lost_cluster_would_go(as_admin):
    a_cluster("north", gpus=3)
    apply(pytorch_job("llama"))
    assert loop.run(timezone.now) == 1
    assert told(as_admin, lose_cluster="north") == {"llama": ("Runs", "Waits", "")}
    a_cluster("south", gpus=3)
    assert told(as_admin, lose_cluster="north") == {"llama": ("Runs", "Starts", "south")}
    stranger = client_of(person("tina", ("viewer", "elsewhere")))
    for caller, hidden in ((stranger, 1), (as_admin, 0)):
        answer = ask(caller, lose_cluster="north").json()
        assert (len(answer["differences"]), answer["hidden_leaving"]) == (1 - hidden, hidden)
    assert Cluster.objects.count() == 2 and Job.objects.get().state == "Placed"


def policy(annotation: str = "", tolerated: str = "") -> str:
    body = yaml.safe_load(POLICY)
    body["metadata"]["annotations"] = {"convoy.dev/unreachable-cluster": annotation} if annotation else {}
    if tolerated:
        body["spec"]["placement"]["clusterTolerations"] = [{"key": tolerated, "operator": "Exists"}]
    return yaml.safe_dump(body)


def running_under(text: str) -> None:
    a_cluster("north", gpus=3)
    apply(text, pytorch_job("llama"))
    assert loop.run(timezone.now) == 1
    a_cluster("south", gpus=3)
    books.sent()


def test_a_job_whose_policy_waits_for_a_lost_cluster_waits_and_leaves_a_drained_one(as_admin):
    running_under(policy("Wait"))
    answer = ask(as_admin, lose_cluster="north").json()
    assert (answer["waits_before"], answer["waits_after"], answer["starts_after"]) == (0, 1, 0)
    [job] = answer["differences"]
    assert (job["before"]["outcome"], job["after"]["outcome"], job["after"]["cluster"]) == ("Runs", "Waits", "north")
    assert job["after"]["reason"]["code"] == "WaitingForCluster"
    assert "convoy.dev/unreachable-cluster: Wait" in job["after"]["reason"]["message"]
    assert told(as_admin, drain_cluster="north") == {"llama": ("Runs", "Starts", "south")}


def test_a_job_whose_policy_waits_leaves_a_lost_cluster_that_is_drained(as_admin):
    running_under(policy("Wait"))
    clusters.drain(Cluster.objects.get(name="north"), by="ada", now=timezone.now())
    assert told(as_admin, lose_cluster="north") == {"llama": ("Runs", "Starts", "south")}


def test_the_prediction_of_waiting_is_what_happens(as_admin):
    running_under(policy("Wait"))
    Job.objects.update(state="Running")
    lost_cluster.north(Cluster.State.UNKNOWN)
    health.check(timezone.now() + timedelta(hours=1))
    assert books.job("llama").reason["code"] == "WaitingForCluster"


@pytest.mark.parametrize(("change", "taint"), [("lose", UNREACHABLE_TAINT), ("drain", "convoy.dev/drained")])
def test_a_job_that_tolerates_the_taint_for_good_stays(as_admin, change, taint):
    running_under(policy(tolerated=taint))
    assert told(as_admin, **{f"{change}_cluster": "north"}) == {}
    other = "drain" if change == "lose" else "lose"
    assert told(as_admin, **{f"{other}_cluster": "north"}) == {"llama": ("Runs", "Starts", "south")}


def test_a_job_that_leaves_is_not_kept_out_by_its_own_charge(as_admin):
    apply_tree(leaf("vision", "default", max={"nvidia.com/gpu": 3}))
    running_under(policy())
    assert told(as_admin, drain_cluster="north") == {"llama": ("Runs", "Starts", "south")}


def test_it_tells_what_more_nodes_would_start(as_admin):
    a_cluster("north", gpus=1)
    apply(pytorch_job("llama"))
    loop.run(timezone.now)
    assert told(as_admin, add_nodes={"cluster": "north", "count": 1}) == {}
    assert told(as_admin, add_nodes={"cluster": "north", "count": 2}) == {"llama": ("Waits", "Starts", "north")}
    offered = {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "2", "example.com/nic": "1"}
    wanted = {"cluster": "north", "allocatable": offered}
    assert told(as_admin, add_nodes=wanted) == {"llama": ("Waits", "Starts", "north")}
    assert Node.objects.count() == 1


def test_it_tells_what_a_raised_quota_would_start(as_admin):
    a_cluster("north", gpus=8)
    apply_tree(leaf("vision", "default", max={"nvidia.com/gpu": 2}))
    apply(pytorch_job("llama"))
    loop.run(timezone.now)
    path = "root/vision"
    assert told(as_admin, raise_quota={"path": path, "max": {"nvidia.com/gpu": 3}}) == {
        "llama": ("Waits", "Starts", "north")
    }
    refused = ask(as_admin, raise_quota={"path": path, "max": {"nvidia.com/gpu": -1}})
    assert refused.status_code == 422 and "max" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("suppose", "status"),
    [
        ({}, 422),
        ({"lose_cluster": "nowhere"}, 404),
        ({"drain_cluster": "nowhere"}, 404),
        ({"drain_cluster": "north", "lose_cluster": "north"}, 422),
        ({"add_nodes": {"cluster": "nowhere"}}, 404),
        ({"add_nodes": {"cluster": "north", "count": 0}}, 422),
        ({"add_nodes": {"cluster": "north", "allocatable": {"cpu": "much"}}}, 422),
        ({"raise_quota": {"path": "root"}}, 404),
        ({"add_job": "kind: Pod"}, 422),
        ({"add_job": POLICY}, 422),
    ],
    ids=str,
)
def test_it_refuses_what_cannot_be_supposed(as_admin, suppose, status):
    a_cluster("north", gpus=1)
    assert ask(as_admin, **suppose).status_code == status


def test_it_supposes_no_job_where_the_caller_may_not_submit(as_viewer):
    assert ask(as_viewer, add_job=pytorch_job("llama")).status_code == 403
