"""The product with three real kube-apiservers as its members; the simulator's kubelets and operators are their clients."""

import time

import pytest
from django.utils import timezone

from fleet.kube.resources import CONFIG_MAPS, NODES, PYTORCH_JOBS
from fleet.member.errors import MemberChanged
from fleet.models import Cluster, Event, Hold, Identity
from fleet.services.clusters import clusters
from jobs.core.failover.rules import Outcome
from jobs.kinds import registry
from jobs.models import Attempt, Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.dispatch.members import member_objects
from tests.realkube.builders import RealWorld
from tests.realkube.control_plane import needs_realkube
from tests.support import laws
from tests.support.world import POLICY, pytorch_job

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]

FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Immediately}}""",
)
LONG = "100h"


def other(name: str) -> str:
    return {"north": "south", "south": "north"}[name]


def running(real: RealWorld, name: str = "llama", **asks) -> str:
    """The name of the cluster on which a new job runs."""
    real.apply(FAILOVER, pytorch_job(name, duration=LONG, **asks))
    return str(real.world.expect(name, "Running").cluster)


def test_it_joins_them_and_knows_their_capacity(real):
    real.join("north", "south", "west")
    rows = {row.name: row for row in Cluster.objects.all()}
    assert set(rows) == {"north", "south", "west"}
    for row in rows.values():
        assert row.version == "v1.20.2" and row.state == "Ready"
        offered = [node.allocatable["nvidia.com/gpu"] for node in row.nodes.all()]
        assert offered == [4, 4] and all(node.ready for node in row.nodes.all())


def test_it_sees_a_node_that_is_cordoned_and_one_that_loses_its_gpus(real):
    north = real.join("north")[0]
    node = NODES.path(name="north-pool0-0")
    row = Cluster.objects.get(name="north").nodes.get(name="north-pool0-0")
    try:
        north.client.merge_patch(node, {"spec": {"unschedulable": True}})
        real.world.until(lambda: (row.refresh_from_db(), row.unschedulable)[1], "the cordon is seen")
        north.client.merge_patch(f"{node}/status", {"status": {"allocatable": {"nvidia.com/gpu": "3"}}})
        real.world.until(lambda: (row.refresh_from_db(), row.allocatable["nvidia.com/gpu"] == 3)[1], "the loss is seen")
    finally:
        north.client.merge_patch(node, {"spec": {"unschedulable": None}})
        north.client.merge_patch(f"{node}/status", {"status": {"allocatable": {"nvidia.com/gpu": "4"}}})


def test_it_runs_a_gang_to_its_end(real):
    real.join("north")
    real.apply(POLICY, pytorch_job("llama", workers=3, gpus=2, duration="10h"))
    real.world.expect("llama", "Running", on="north")
    pods = real.pods("north")
    assert len({pod["metadata"]["name"] for pod in pods}) == 4
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["north-pool0-0"] * 2 + ["north-pool1-0"] * 2
    real.world.until(lambda: not Hold.objects.filter(released_at__isnull=True).exists(), "the pods are counted")
    real.finish("llama")
    assert real.world.expect("llama", "Succeeded").attempt == 1
    laws.terminal_holds_nothing()


def test_a_gang_waits_whole_until_it_fits(real):
    real.join("north")
    real.apply(POLICY, pytorch_job("small", workers=0, gpus=4, duration=LONG))
    real.world.expect("small", "Running")
    real.apply(pytorch_job("big", workers=1, gpus=4, duration=LONG))
    real.world.until(lambda: real.world.job("big").reason, "big is given a reason")
    assert real.clusters_with("big") == []
    real.world.delete("small")
    real.world.expect("big", "Running")


def test_it_brings_dependents_and_takes_them_along(real):
    north = real.join("north")[0]
    config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {lr: '0.1'}}"
    real.apply(POLICY, config, pytorch_job("llama", workers=0, config_map="settings", duration=LONG))
    real.world.expect("llama", "Running")
    assert north.client.get(CONFIG_MAPS.path(real.namespace, "settings"))["data"] == {"lr": "0.1"}
    real.world.delete("llama")
    real.world.until(lambda: not north.config_maps(real.namespace), "the dependent is gone")


def test_it_suspends_resumes_and_deletes_without_a_trace(real):
    real.join("north")
    running(real)
    real.world.suspend("llama")
    real.world.until(lambda: not real.pods("north"), "no pod runs")
    real.world.expect("llama", "Suspended")
    real.world.resume("llama")
    real.world.expect("llama", "Running")
    real.world.delete("llama")
    real.world.until(lambda: not real.clusters_with("llama") and not real.pods("north"), "nothing is left")


def test_it_prints_and_follows_the_log_of_a_pod(real, as_admin):
    real.join("north")
    running(real, workers=0)
    url = f"/api/v1/jobs/{real.world.job('llama').uid}/logs/"
    answer = as_admin.get(url, {"tail": 1})
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content).count(b"\n") == 1
    followed = iter(as_admin.get(url, {"follow": "true"}).streaming_content)
    assert next(followed) and next(followed)


def test_it_moves_the_jobs_of_a_member_that_is_away_and_removes_the_copy_that_returns(real):
    north, south = real.join("north", "south")
    home = running(real)
    lost = {"north": north, "south": south}[home]
    lost.line.cut()
    assert real.world.expect("llama", "Running", on=other(home)).attempt == 2
    assert real.copy(home, "llama"), "the first copy runs on, unseen"
    lost.line.mend()
    real.world.until(lambda: real.clusters_with("llama") == [other(home)], "one copy is left")
    real.world.until(lambda: not real.pods(home), "its pods are gone")
    assert real.world.expect("llama", "Running").attempt == 2


def test_it_goes_on_with_the_copy_of_a_member_that_returns_before_another_place_was_there(real):
    north = real.join("north")[0]
    running(real)
    uid = real.copy("north", "llama")["metadata"]["uid"]
    north.line.cut()
    real.world.expect("llama", "Moving")
    north.line.mend()
    assert real.world.expect("llama", "Running", on="north").attempt == 1
    assert real.copy("north", "llama")["metadata"]["uid"] == uid


def test_it_believes_a_copy_that_succeeded_while_its_member_was_away(real):
    north = real.join("north")[0]
    real.apply(FAILOVER, pytorch_job("llama", workers=0, duration="10h"))
    real.world.expect("llama", "Running")
    north.line.cut()
    real.finish("llama")
    real.world.until(lambda: "Succeeded" in str(real.copy("north", "llama").get("status")), "it has ended unseen")
    north.line.mend()
    assert real.world.expect("llama", "Succeeded").attempt == 1


def test_it_goes_on_after_the_api_server_was_killed_and_its_history_compacted(real):
    north = real.join("north")[0]
    running(real)
    north.plane.kill_api_server()
    real.world.until(lambda: Cluster.objects.get(name="north").state != "Ready", "north is missed")
    north.plane.start_api_server()
    north.plane.compact()
    assert real.world.expect("llama", "Running", on="north").attempt == 1
    real.world.delete("llama")
    real.world.until(lambda: not real.clusters_with("llama") and not real.pods("north"), "nothing is left")


def test_it_moves_a_job_that_failed(real):
    real.join("north", "south")
    failing = pytorch_job("llama", workers=0, duration="1s", **{"convoy.dev/exit-code": "1"})
    real.apply(FAILOVER, failing.replace("template:", "restartPolicy: Never\n      template:"))
    real.world.until(lambda: Attempt.objects.filter(job__name="llama").count() >= 2, "there is a second attempt")
    first, second = Attempt.objects.filter(job__name="llama").order_by("number")[:2]
    assert first.outcome == Outcome.FAILED and second.cluster_name == other(first.cluster_name)


def test_it_moves_the_jobs_of_a_drained_member(real):
    real.join("north", "south")
    home = Cluster.objects.get(name=running(real))
    clusters.drain(home, by="ada", now=timezone.now())
    real.world.expect("llama", "Running", on=other(home.name))
    assert Event.objects.filter(message__contains=f"{home.name} is drained").exists()
    real.world.until(lambda: real.clusters_with("llama") == [other(home.name)], "one copy is left")


def test_a_late_withdrawal_leaves_the_newer_attempt_alone(real):
    real.join("north")
    running(real)
    late = Work.objects.get()
    late.state = Work.State.WITHDRAWING
    first = real.copy("north", "llama")["metadata"]["uid"]
    real.world.clients["north"].delete(PYTORCH_JOBS.path(real.namespace, "llama"))
    real.world.until(lambda: real.world.job("llama").attempt == 2, "it is placed again")
    real.world.expect("llama", "Running")
    second = real.copy("north", "llama")["metadata"]["uid"]
    assert second != first
    dispatcher._act_on_state(late, Job.objects.get(), timezone.now)
    copy = real.copy("north", "llama")
    assert copy["metadata"]["uid"] == second and not copy["metadata"].get("deletionTimestamp")


def test_a_late_sender_makes_nothing_beside_the_newer_attempt(real):
    north = real.join("north")[0]
    running(real)
    job, work = real.world.job("llama"), Work.objects.get()
    kind = registry.kind_of(work.api_version, work.kind)
    real.world.delete("llama")
    real.world.until(lambda: not real.clusters_with("llama"), "it is gone")
    uid = str(job.uid)
    newer, older = (
        member_objects.manifest(kind, job.manifest, member_objects.labels(Identity.here(), uid, attempt))
        for attempt in (3, 2)
    )
    member_objects.create(north.client, PYTORCH_JOBS, newer, uid, 3)
    with pytest.raises(member_objects.Superseded):
        member_objects.create(north.client, PYTORCH_JOBS, older, uid, 2)
    assert member_objects.remove(north.client, PYTORCH_JOBS, real.namespace, "llama", uid, 2)
    assert not real.copy("north", "llama")["metadata"].get("deletionTimestamp")


def test_it_deletes_only_what_it_judged(real):
    north = real.join("north")[0]
    running(real)
    path = PYTORCH_JOBS.path(real.namespace, "llama")
    judged = real.copy("north", "llama")
    north.client.merge_patch(path, {"metadata": {"annotations": {"touched": str(time.time())}}})
    with pytest.raises(MemberChanged):
        member_objects._delete(north.client, path, judged)
    assert not real.copy("north", "llama")["metadata"].get("deletionTimestamp")
