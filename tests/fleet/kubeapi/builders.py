"""Steps that tests of watches share, and members as rows."""

import time
from uuid import UUID, uuid4

from django.utils import timezone

from fleet.core.members import marks, observed
from fleet.models import Cluster
from fleet.services.watching.node_pod_sync import NodePodSync


def until(holds) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Member:
    """A cluster whose pods and nodes are written down as its watcher writes them; by itself nothing listens at its address."""

    def __init__(self, name: str, row: Cluster | None = None) -> None:
        now = timezone.now()
        self.row = row or Cluster.objects.create(
            name=name, server="https://north.example", access={}, state="Ready", state_since=now, joined_at=now
        )
        self.sync = NodePodSync(self.row.pk)
        self.sync.list_nodes([])
        self.sync.list_pods([])
        self.sync.write(now)

    def node(self, name: str, *, ready: bool = True) -> None:
        condition = {"type": "Ready", "status": str(ready)}
        status = {"allocatable": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "8"}, "conditions": [condition]}
        self.sync.ledger.see_node(observed.node({"metadata": {"name": name}, "status": status}))
        self.sync.write(timezone.now())

    def lose_node(self, name: str) -> None:
        self.sync.ledger.lose_node(name)
        self.sync.write(timezone.now())

    def pods(self, *manifests: dict) -> None:
        for manifest in manifests:
            self.sync.see_pod(observed.pod(manifest, lambda kind, labels: ("Worker", 0), lambda *_: True))
        self.sync.write(timezone.now())

    def lose_pod(self, name: str, namespace: str = "default") -> None:
        self.sync.lose_pod((namespace, name))
        self.sync.write(timezone.now())


def a_pod(name: str, *, namespace: str = "default", node: str = "n1", phase: str = "Running", **labels: str) -> dict:
    """A pod of a fleet job as a member shows it."""
    marked = {marks.JOB_UID: str(UUID(int=1)), marks.ATTEMPT: "1", marks.POD_MARK: "proof"}
    running = phase == "Running"
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if running else {}
    status = {"name": "main", "image": "train:1", "ready": running, "restartCount": 2, "state": state}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{uuid4()}",
            "labels": {**marked, **labels},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": "main", "image": "train:1"}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase, **({"containerStatuses": [status]} if running else {})},
    }
