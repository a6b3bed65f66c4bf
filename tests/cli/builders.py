"""What a server answers the command line, and the command line as a person runs it."""

import os
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support import forked_cli
from tests.support.forked_cli import Said

ROOT = Path(__file__).resolve().parents[2]

TOKEN = "cvy_" + "t" * 43
JOB_ID = "11111111-1111-1111-1111-111111111111"


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def job(name: str = "llama", **fields):
    asked = {"nvidia.com/gpu": 1, "cpu": 1000, "memory": 2 * 2**30, "pods": 1}
    pod = {"request": asked, "gpus": 1}
    return {
        "id": JOB_ID, "kind": "PyTorchJob", "api_version": "kubeflow.org/v1", "namespace": "default", "name": name,
        "state": "Running", "reason": None, "cluster": "north", "attempt": 1, "created_at": ago(17960), "queued_at": ago(17960),
        "started_at": ago(13460), "finished_at": None, "deleting_at": None, "gpus": 3, "priority": 0, "suspended": False,
        "roles": [{"name": "master", "replicas": 1, **pod}, {"name": "worker", "replicas": 2, **pod}],
        "total": {key: 3 * value for key, value in asked.items()}, "pods_running": 2,
        "labels": {"team": "vision"}, "actions": {},
        "policy": {"kind": "PropagationPolicy", "namespace": "default", "name": "example-policy"},
    } | fields  # fmt: skip


def cluster(name: str = "north", **fields):
    gpus = {"allocatable": 8, "requested": 3, "held": 1, "free": 4}
    return {
        "name": name, "state": "Ready", "reason": "", "message": "", "cordoned": False, "version": "v1.31.0",
        "region": "eu", "zone": "", "labels": {}, "taints": [], "last_heartbeat": ago(1),
        "nodes": {"total": 4, "ready": 4}, "capacity": {"nvidia.com/gpu": gpus}, "gpus": gpus,
    } | fields  # fmt: skip


READ_AT_IMPORT = {"CONVOY_NAMESPACE"}


class Convoy:
    """The real command in a process of its own, in an empty home."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), "CONVOY_URL": url,
            "CONVOY_TOKEN": TOKEN, "NO_PROXY": "*",
        }  # fmt: skip

    def __call__(self, *words: str, stdin: str = "", **env: str) -> Said:
        if not READ_AT_IMPORT & env.keys():
            return forked_cli.run(words, self.env | env, self.home, stdin)
        done = subprocess.run(
            self.command(*words),
            input=stdin, capture_output=True, text=True, env=self.env | env, cwd=self.home, timeout=180,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    def on_a_terminal(self, typed: bytes, *words: str) -> tuple[int, bytes]:
        """How it ends, and what it says beside its result, when a person types this."""
        person, terminal = pty.openpty()
        os.write(person, typed)
        command = self.command(*words)
        done = subprocess.run(command, stdin=terminal, capture_output=True, env=self.env, cwd=self.home, timeout=180)
        os.close(person)
        os.close(terminal)
        return done.returncode, done.stderr

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "frontend.cli.main", *words]


DIFFERENCE = {
    "id": "", "kind": "PyTorchJob", "namespace": "default", "name": "llama",
    "before": {"outcome": "Runs", "cluster": "north", "reason": None},
    "after": {"outcome": "Waits", "cluster": "", "reason": {"code": "NoClusterFits", "message": "0/1 clusters fit"}},
}  # fmt: skip


def answer(server, *differences) -> None:
    counts = {"starts_before": 0, "starts_after": 0, "waits_before": 0, "waits_after": 1}
    server.on("whatif/", {"differences": list(differences), **counts}, method="POST")


def _kind(api_version: str, kind: str, plural: str, *short: str, category: str = "job"):
    known = {"api_version": api_version, "kind": kind, "plural": plural, "short_names": list(short)}
    return known | {"category": category, "description": ""}


KINDS = (
    _kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs"),
    _kind("kubeflow.org/v1", "TFJob", "tfjobs"),
    _kind("kubeflow.org/v1", "MPIJob", "mpijobs"),
    _kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs"),
    _kind("sparkoperator.k8s.io/v1beta2", "SparkApplication", "sparkapplications", "sparkapp"),
    _kind("batch.volcano.sh/v1alpha1", "Job", "jobs", "vcjob", "vj"),
    _kind("batch/v1", "Job", "jobs"),
    _kind("v1", "ConfigMap", "configmaps", category="support"),
)
"""What the server lists at ``schemas/``."""
