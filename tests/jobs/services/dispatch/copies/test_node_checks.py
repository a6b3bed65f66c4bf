"""A job that asks for it has its nodes checked before it starts: what is sent with its copy, and what a failed check does."""

import json
import shutil
import subprocess
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.core.members.pods import pod_details
from fleet.errors import InvalidInput
from fleet.kube.resources import CONFIG_MAPS, PYTORCH_JOBS, SERVICES
from fleet.models import Event, NodeExclusion, Pod
from fleet.services.clusters import node_exclusions
from jobs.core.failover import node_check
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.dispatch.copies import node_checks
from jobs.services.dispatch.members import member_objects
from jobs.services.follow.status import JobEventHandler
from tests.jobs.services import resizing as elastic
from tests.jobs.services.resizing import order
from tests.support import books
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
WANTED = "convoy.dev/node-check"


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else."""
    world = World(tmp_path)
    world.still("north", 64)
    yield world
    world.stop()


def gang(name: str = "llama", workers: int = 3, **annotations: str) -> dict:
    return yaml.safe_load(elastic.elastic(name, workers, annotations=annotations))


def send(manifest: dict) -> Job:
    name = manifest["metadata"]["name"]
    books.apply(yaml.safe_dump(manifest))
    books.cycle()
    assert dispatcher.push(order(name).pk, timezone.now)
    return books.job(name)


def template(world: World, name: str = "llama") -> dict:
    copy = world.clients["north"].get(PYTORCH_JOBS.path("default", name))
    return copy["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]


def says(verdict: str, **more: object) -> str:
    return json.dumps({"name": "convoy.nodecheck", "rank": 0, "verdict": verdict, **more}, separators=(",", ":"))


def ended_check(job: Job, verdict: str = "faulty", node: str = "node", code: int = 86, *, again: bool = False) -> Pod:
    """A pod whose check has ended; ``again``: its container waits to be started once more."""
    ended = {
        "terminated": {
            "exitCode": code,
            "finishedAt": "2026-11-20T10:00:00Z",
            "message": says(verdict, message="it failed"),
        }
    }
    state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended} if again else {"state": ended}
    manifest = {
        "metadata": {"name": f"{job.name}-worker-0"},
        "spec": {
            "initContainers": [{"name": "convoy-node-check", "image": "i"}],
            "containers": [{"name": "pytorch", "image": "i"}],
        },
        "status": {"initContainerStatuses": [{"name": "convoy-node-check", "restartCount": 1, **state}]},
    }
    pod = Pod.objects.create(
        cluster=job.cluster, namespace="default", name=f"{job.name}-worker-0", uid=f"{job.name}-0", job_uid=job.uid,
        attempt=job.attempt, node=node, phase="Pending" if again else "Failed", created_at=timezone.now(),
        details=pod_details.read(manifest),
    )  # fmt: skip
    JobEventHandler().on_pods_changed(job.cluster_id, {(job.uid, job.attempt)}, timezone.now())
    return pod


def test_each_pod_of_a_gang_that_asks_for_it_checks_its_node_first(world):
    job = send(gang(**{WANTED: "Faulty"}))
    made = template(world)
    [check] = made["spec"]["initContainers"]
    trains = made["spec"]["containers"][0]
    assert (check["name"], check["image"]) == ("convoy-node-check", trains["image"])
    assert check["resources"] == trains["resources"], "it sees the GPUs, and asks for no more than the pod does"
    arguments = check["command"][5:]
    name = made["metadata"]["labels"][WANTED]
    assert arguments[:4] == ["--service", f"{name}.default.svc", "--nodes", "3"] and "--slow-fails" not in arguments
    client, copy = world.clients["north"], world.clients["north"].get(PYTORCH_JOBS.path("default", "llama"))
    service = client.get(SERVICES.path("default", name))
    assert service["spec"]["selector"] == {WANTED: name} and service["spec"]["publishNotReadyAddresses"]
    code = client.get(CONFIG_MAPS.path("default", name))
    assert "def main" in code["data"]["nodecheck.py"] and "__init__.py" in code["data"]
    assert {owner["uid"] for each in (service, code) for owner in each["metadata"]["ownerReferences"]} == {
        copy["metadata"]["uid"]
    }
    assert dispatcher.push(order("llama").pk, timezone.now) is False and job.attempt == 1


def test_a_pod_waits_for_the_others_until_one_time_for_all(world):
    before = timezone.now().timestamp()
    send(gang(**{WANTED: "Faulty"}))
    [check] = template(world)["spec"]["initContainers"]
    options = check["command"]
    until = float(options[options.index("--until") + 1])
    assert before <= until - float(options[options.index("--join-s") + 1]) <= timezone.now().timestamp()


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("def main(argv): return 86", 86),
        ("def main(argv): return 2", 0),
        ("def main(argv): raise SystemExit(2)", 0),
        ("raise TypeError('too old')", 0),
        ("def main(argv): return 86 if argv[:1] == ['--service'] else 0", 86),
    ],
)
def test_only_a_failed_check_keeps_a_pod_from_its_training(world, tmp_path, code, ends):
    send(gang(**{WANTED: "Faulty"}))
    [check] = template(world)["spec"]["initContainers"]
    package = tmp_path / "code" / "convoy_runtime"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "nodecheck.py").write_text(code)
    command = [each.replace("/opt/convoy/node-check'", f"{package.parent}'") for each in check["command"]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == ends, ended.stderr


def test_an_image_without_python_trains_unchecked(world, tmp_path):
    send(gang(**{WANTED: "Faulty"}))
    [check] = template(world)["spec"]["initContainers"]
    command = [shutil.which("sh"), *check["command"][1:]]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={"PATH": str(tmp_path)}
    )
    assert (ended.returncode, ended.stdout) == (0, "the image has no python3: its node is not checked\n")


def test_what_the_check_needs_is_not_created_in_the_name_of_the_author(world, monkeypatch):
    authors = []
    create = member_objects.create

    def recorded(client, resource, body, *rest, **more):
        authors.append((resource, more.get("author")))
        return create(client, resource, body, *rest, **more)

    monkeypatch.setattr(member_objects, "create", recorded)
    send(gang(**{WANTED: "Faulty"}))
    assert [author for resource, author in authors if resource in (CONFIG_MAPS, SERVICES)] == [None, None]


def test_a_share_is_not_checked_and_says_why():
    kind = registry.kind_of("kubeflow.org/v1", "PyTorchJob")
    body = gang(**{WANTED: "Faulty"})
    why, name = node_checks.add_check(kind, body, Work(), timezone.now(), is_share=True)
    assert "divided" in why and not name and body == gang(**{WANTED: "Faulty"})


def test_no_gang_is_checked_that_does_not_ask_for_it(world):
    send(gang())
    assert "initContainers" not in template(world)["spec"]
    assert WANTED not in template(world)["metadata"].get("labels", {})


def test_a_lone_pod_is_sent_without_a_check_and_says_why(world):
    send(gang(workers=1, **{WANTED: "FaultyOrSlow"}))
    assert "initContainers" not in template(world)["spec"]
    assert Event.objects.get(reason="NodesNotChecked").message == "it has one pod, and a check takes two"


def test_another_value_is_refused_with_those_that_there_are(world):
    with pytest.raises(InvalidInput) as refused:
        books.apply(yaml.safe_dump(gang(**{WANTED: "yes"})))
    assert "must be one of Off, Faulty, FaultyOrSlow, not 'yes'" in str(refused.value.faults[0].detail)


@pytest.mark.parametrize("again", [False, True], ids=["the pod fails", "the member starts the check again"])
def test_a_node_that_failed_the_check_is_excluded_for_the_job_and_the_attempt_ends_at_once(world, again):
    job = send(gang(**{WANTED: "Faulty"}))
    ended_check(job, again=again)
    [row] = node_exclusions.in_force()
    assert (row.node, row.job_uid, row.reason) == ("node", job.uid, "NodeCheck")
    job.refresh_from_db()
    assert job.state not in Job.ON_MEMBER and "the node check found node faulty: it failed" in job.reason["message"]
    assert node_exclusions.for_everyone() == {}
    JobEventHandler().on_pods_changed(row.cluster_id, {(job.uid, 1)}, timezone.now() + timedelta(seconds=5))
    assert Event.objects.filter(reason="NodeExcluded", regarding_uid=str(job.uid)).count() == 1


def test_a_slow_node_says_so(world):
    job = send(gang(**{WANTED: "FaultyOrSlow"}))
    ended_check(job, "slow")
    assert node_exclusions.in_force().get().reason == "Straggler"


def test_a_check_that_passed_or_could_not_be_made_excludes_nothing(world):
    job = send(gang(**{WANTED: "Faulty"}))
    ended_check(job, "unknown", code=0)
    ended = Pod.objects.get()
    assert not NodeExclusion.objects.exists() and "convoy-node-check" in ended.details
    job.refresh_from_db()
    assert job.state == Job.State.DISPATCHED


@pytest.mark.parametrize("said", ["{", "[1]", '{"message": 5}', "\u0000" * 50, "x" * 5000])
def test_whatever_a_pod_writes_of_its_failed_check_is_bounded(said):

    ended = {"terminated": {"exitCode": 86, "message": said}}
    failed = node_check.failed({"initContainers": [{"name": "convoy-node-check", "state": ended}]})
    assert failed and failed.message == "it failed the node check" and not failed.is_slow
