"""A node of an elastic job is taken back: notice, save, fewer workers or another place, and its size again afterwards.

Real: Convoy's services and watches, the supervisor with its own service account, the trainers, their processes and network.
Simulated: the members' API servers, kubelets and operator. The members mount the same disk, and its claim says so.
"""

from collections.abc import Iterator

import pytest
import yaml

from jobs.models import Attempt, Job, Notice
from jobs.runtime.notices import Scope
from simulator import fault_parser
from supervisor.core.facts import MANAGED
from tests.jobs.services.resizing import LEAF, not_over_committed, size, sizes_agree
from tests.support import books, process_logs, supervised
from tests.support.books import GPU
from tests.support.isolation import needs_network
from tests.support.quotas import apply_tree, gpus, leaf
from tests.support.world import POLICY, World

pytestmark = [pytest.mark.django_db(transaction=True), needs_network]

PATIENCE_S = 240.0
TRAINER = """
import http.server, json, os, pathlib, sys, threading, time

class Stop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global alive
        alive = alive and self.path != "/stop"
        self.wfile.write(b"ok")
    def log_message(self, *words): pass

def log(event): print(json.dumps({"event": event, "step": step, "pod": os.environ["POD"]}), flush=True)

alive, file = True, pathlib.Path("/disk", os.environ["POD"])
threading.Thread(target=http.server.HTTPServer(("0.0.0.0", 9009), Stop).serve_forever, daemon=True).start()
step = int(file.read_text()) if file.exists() else 0
log("start")
while alive:
    time.sleep(0.05)
    step += 1
file.write_text(str(step))
log("saved")
sys.exit(int(os.environ["EXITS"]))
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, annotations: {convoy.dev/data-placement: Anywhere}}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""


def bert(least: int, exits: int = 255, **notes: str) -> str:
    """Three workers that fill a node each."""
    container = {
        "name": "pytorch",
        "image": "train",
        "command": ["python", "-c", TRAINER],
        "env": [
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "EXITS", "value": str(exits)},
        ],
        "volumeMounts": [{"name": "disk", "mountPath": "/disk"}],
        "resources": {"limits": {GPU: 4}},
    }
    disk = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    marks = {"convoy.dev/run": "process", MANAGED: "true"}
    template = {"metadata": {"annotations": marks}, "spec": {"containers": [container], "volumes": [disk]}}
    worker = {"replicas": 3, "restartPolicy": "OnFailure", "template": template}
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "labels": {LEAF: "a"}, "annotations": notes},
        "spec": {
            "elasticPolicy": {"minReplicas": least, "maxReplicas": 3},
            "pytorchReplicaSpecs": {"Worker": worker},
        },
    }
    return yaml.safe_dump(body)


@pytest.fixture
def fleet(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One member with three nodes and a supervisor."""
    for name, value in supervised.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    world.member("north", 4, 4, 4, time_scale=1.0)
    supervised.supervise(
        world.clients["north"], lambda has: world.until(lambda: bool(has()), "it looks", patience_s=PATIENCE_S)
    )
    apply_tree(leaf("a", **gpus(12, 12)))
    yield world


def another_member(world: World) -> None:
    """It mounts the disk of the first one."""
    home = world.home / "south"
    home.mkdir()
    (home / "volumes").symlink_to(world.home / "north" / "volumes")
    world.member("south", 4, 4, 4, time_scale=1.0)


def said(world: World, member: str, event: str) -> dict[str, list[int]]:
    """By pod, the steps at which its processes said so."""
    found: dict[str, list[int]] = {}
    for record in process_logs.records(world.home / member / "logs"):
        if record["event"] == event:
            found.setdefault(record["pod"], []).append(record["step"])
    return found


def trains(world: World, member: str = "north", workers: int = 3) -> None:
    world.until(lambda: len(said(world, member, "start")) >= workers, "they train", patience_s=PATIENCE_S)
    world.expect("bert", "Running", on=member, patience_s=PATIENCE_S)


def node_of(world: World, pod: str) -> str:
    return next(each["spec"]["nodeName"] for each in world.pods("north") if each["metadata"]["name"] == pod)


def reclaim(world: World, pod: str, notice_s: int) -> str:
    node = node_of(world, pod)
    world.members["north"].disturb(fault_parser.parse(["reclaim", node, str(notice_s)]))
    return node


def charged(world: World) -> int:
    return books.used("root/a").get(GPU, 0)


def saved_steps(world: World) -> dict[str, int]:
    folder = next((world.home / "north" / "volumes").glob("*/disk"))
    return {file.name: int(file.read_text()) for file in folder.iterdir()}


def sized(world: World, workers: int) -> None:
    def is_sized() -> bool:
        live = [pod for pod in world.pods("north") if pod["metadata"]["name"].startswith("bert")]
        running = [pod for pod in live if pod["status"].get("phase") == "Running"]
        return size("bert") == len(live) == len(running) == workers

    world.until(is_sized, f"{workers} workers run", patience_s=PATIENCE_S)
    assert charged(world) == 4 * workers
    sizes_agree()
    not_over_committed(world.job("bert").cluster)


def test_it_runs_on_with_fewer_workers_and_grows_back_without_an_attempt(fleet: World) -> None:
    fleet.apply(POLICY, CLAIM, bert(least=2))
    trains(fleet)
    node = reclaim(fleet, "bert-worker-2", 15)
    fleet.until(lambda: Notice.objects.filter(left_at__isnull=False).exists(), "it left", patience_s=PATIENCE_S)
    (notice,) = Notice.objects.all()
    assert (notice.pod, notice.node, notice.scope) == ("bert-worker-2", node, Scope.PODS)
    assert notice.at <= notice.heard_at <= notice.left_at < notice.deadline
    sized(fleet, 2)
    job = fleet.job("bert")
    assert (job.state, job.attempt, job.resize["sizes"]) == (Job.State.RUNNING, 1, {"worker": 3})
    assert set(said(fleet, "north", "saved")) | set(saved_steps(fleet)) == {"bert-worker-2"}
    fleet.members["north"].disturb(fault_parser.parse(["node-up", node]))
    sized(fleet, 3)
    step = saved_steps(fleet)["bert-worker-2"]
    again = {"bert-worker-2": [step]}
    fleet.until(lambda: again.items() <= said(fleet, "north", "start").items(), "it goes on", patience_s=PATIENCE_S)
    assert (fleet.job("bert").resize, Attempt.objects.count()) == (None, 1)


@pytest.mark.parametrize("exits", [255, 0])
def test_below_its_min_all_save_and_it_goes_on_elsewhere_where_they_stopped(fleet: World, exits: int) -> None:
    fleet.apply(POLICY, CLAIM, bert(least=3, exits=exits))
    trains(fleet)
    reclaim(fleet, "bert-worker-0", 180)
    job = fleet.expect("bert", "Queued", patience_s=PATIENCE_S)
    assert (job.charge, charged(fleet)) == (None, 0)
    assert {"Reclaimed", "QueuedAgain"} <= {reason for reason, _ in fleet.events("bert")}
    notices = list(Notice.objects.order_by("pod"))
    assert [(row.pod, row.scope) for row in notices] == [(f"bert-worker-{i}", Scope.JOB) for i in range(3)]
    assert all(row.heard_at and row.left_at and row.left_at < row.deadline for row in notices)
    assert Attempt.objects.get().outcome == "Reclaimed"
    saved = saved_steps(fleet)
    assert set(saved) == {row.pod for row in notices}
    another_member(fleet)
    trains(fleet, "south")
    assert said(fleet, "south", "start") == {pod: [step] for pod, step in saved.items()}
    assert (fleet.job("bert").attempt, charged(fleet)) == (2, 12)
    sizes_agree()
