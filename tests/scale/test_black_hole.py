"""Benchmark ``black-hole``: two workers on PostgreSQL and Valkey, a member that takes connections and never answers.

Two hundred jobs are due at that member. Meanwhile jobs for another member are submitted one after the other; the time is from
the answer to the submission to the job's copy there, as that member's own API tells it. Result in
``.convoy/bench/black-hole.json``.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml

from deploy.bootstrap.home import ROOT
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.services.clusters.clusters import parse_kubeconfig
from tests.support import valkey
from tests.support.black_hole import black_hole
from tests.support.product import Product

pytestmark = pytest.mark.bench
LOST, BYSTANDERS, MOST_S = 200, 40, 1.0
JOBS = "/apis/kubeflow.org/v1/pytorchjobs"
WORKER = (
    "-m",
    "celery",
    "-A",
    "deploy.config.celery",
    "worker",
    "--pool=threads",
    "--loglevel=warning",
    "-n",
    "second@%h",
)
TREE = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec:
  root:
    name: root
    max: {cpu: 1000}
    min: {cpu: 1000}
    children: [{name: all, max: {cpu: 1000}, namespaces: [north, south]}]
"""
SWALLOW = """
import sys
import django; django.setup()
from fleet.models import Cluster
from tests.support.black_hole import swallow
swallow(Cluster.objects.get(name=sys.argv[1]), sys.argv[2])
"""


@pytest.fixture
def servers(postgres: str) -> Iterator[dict[str, str]]:
    with valkey.started() as broker:
        yield {"DATABASE_URL": postgres, "REDIS_URL": broker}


@pytest.fixture
def product(tmp_path: Path, servers: dict[str, str]) -> Iterator[Product]:
    made = Product(tmp_path / "home")
    started = made.manage("up", "--detach", CONVOY_DEMO_LIFE="off", **servers)
    assert started.returncode == 0, started.stdout + started.stderr
    with second_worker(made, servers):
        yield made
    made.manage("down")


@contextmanager
def second_worker(product: Product, servers: dict[str, str]) -> Iterator[None]:
    env = environ(product, servers)
    with subprocess.Popen([sys.executable, *WORKER], cwd=ROOT, env=env) as worker:
        yield
        worker.terminate()


def environ(product: Product, servers: dict[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        **servers,
        "CONVOY_HOME": str(product.home.path),
        "DJANGO_SETTINGS_MODULE": "deploy.config.settings",
    }


def job(name: str, cluster: str) -> str:
    """One pod that asks for next to nothing, and goes to one cluster."""
    container = {"name": "pytorch", "image": "example.com/train", "resources": {"limits": {"cpu": "1m"}}}
    replicas = {"Master": {"replicas": 1, "template": {"spec": {"containers": [container]}}}}
    head = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    metadata = {"name": name, "namespace": cluster}
    return yaml.safe_dump({**head, "metadata": metadata, "spec": {"pytorchReplicaSpecs": replicas}})


def policy(cluster: str) -> str:
    selector = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    spec = {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": [cluster]}}}
    head = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}
    return yaml.safe_dump({**head, "metadata": {"name": "here", "namespace": cluster}, "spec": spec})


def arrivals(client: MemberClient) -> dict[str, float]:
    """When each job came, filled by a thread that ends with the member."""
    came: dict[str, float] = {}
    version = client.list(JOBS)["metadata"]["resourceVersion"]

    def follow() -> None:
        with suppress(MemberError):
            for event in client.watch(JOBS, resource_version=version, timeout_s=3600):
                came.setdefault(event.object["metadata"].get("name", ""), time.monotonic())

    threading.Thread(target=follow, daemon=True).start()
    return came


def due(api: httpx.Client) -> int:
    """Jobs that were placed on the member and have not reached it."""
    answer = api.get("jobs/", params={"namespace": "south", "state": "Placed", "page_size": 1})
    return int(answer.raise_for_status().json()["count"])


def until(holds: Callable[[], Any], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_member_that_never_answers_delays_what_goes_to_others_by_less_than_a_second(
    product: Product, servers: dict[str, str], report: Callable[[str, dict[str, Any]], None]
) -> None:
    door = json.loads((product.home.path / "cli.json").read_text())
    headers = {"Authorization": f"Bearer {door['token']}", "Content-Type": "application/yaml"}
    api = httpx.Client(base_url=door["url"].rstrip("/") + "/api/v1/", headers=headers, timeout=60)
    for each in api.get("jobs/").json()["results"]:  # of the demo; the tree that replaces its own has no place for them
        api.delete(f"jobs/{each['id']}/").raise_for_status()
    until(lambda: not api.get("jobs/").json()["count"], 120)
    api.post("apply", content="\n---\n".join([TREE, policy("north"), policy("south")])).raise_for_status()
    config = (product.home.path / "simulator" / "north.kubeconfig").read_text()
    came = arrivals(MemberClient(parse_kubeconfig(config)))
    submitted: dict[str, float] = {}
    with black_hole() as address:
        command = [sys.executable, "-c", SWALLOW, "south", address]
        subprocess.run(command, cwd=ROOT, env=environ(product, servers), check=True)
        text = "\n---\n".join(job(f"lost-{i}", "south") for i in range(LOST))
        api.post("apply", content=text).raise_for_status()
        until(lambda: due(api) == LOST, 120)
        for i in range(BYSTANDERS):
            api.post("apply", content=job(f"bystander-{i}", "north")).raise_for_status()
            submitted[f"bystander-{i}"] = time.monotonic()
            time.sleep(0.5)
        until(lambda: submitted.keys() <= came.keys(), 120)
        held = due(api)
    took = np.array([came[name] - at for name, at in submitted.items()]) * 1000
    figures = {
        name: round(float(np.percentile(took, q)), 1) for name, q in (("p50_ms", 50), ("p99_ms", 99), ("worst_ms", 100))
    }
    report("black-hole", {"due_there": LOST, "still_due": held, "bystanders": BYSTANDERS, **figures})
    assert took.max() <= MOST_S * 1000
