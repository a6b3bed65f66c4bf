"""Benchmark ``failover``: a cluster with 1,000 running jobs is lost, all of them run elsewhere; it returns with its old pods.

The product as ``up`` starts it, on PostgreSQL, with two simulated members that hold 1,008 GPUs each. What counts is seen from
outside, on the members' own APIs: from the moment the tolerated time is over until the last job's copy is in the other
member. Then the lost member answers again, with its old storage and its pods still running: each job has one copy in the end,
and none was started twice. Result in ``.convoy/bench/failover.json``; ``CONVOY_BENCH_JOBS`` changes the number of jobs.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.member.client import MemberClient
from fleet.services.clusters.clusters import parse_kubeconfig
from tests.scale.fleet_up import disturb, wait

pytestmark = pytest.mark.bench
JOBS = int(os.environ.get("CONVOY_BENCH_JOBS", "1000"))
WITHIN_S, TOLERATED_S = 60.0, 10
COPIES, PODS = "/apis/kubeflow.org/v1/pytorchjobs", "/api/v1/pods"
FLEET = """
startDelay: 1s
members:
  - {name: lost, pools: [{name: gpu, count: 126, cpu: "96", memory: 1Ti, gpus: 8, gpuModel: A100}]}
  - {name: spare, pools: [{name: gpu, count: 126, cpu: "96", memory: 1Ti, gpus: 8, gpuModel: A100}]}
"""
POLICY = f"""
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {{name: everywhere}}
spec:
  resourceSelectors: [{{apiVersion: kubeflow.org/v1, kind: PyTorchJob}}]
  placement:
    clusterAffinity: {{clusterNames: [lost, spare]}}
    clusterTolerations:
      - {{key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: {TOLERATED_S}}}
"""
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: job-{0:04}, namespace: default}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {{metadata: {{annotations: {{convoy.dev/duration: 2h}}}}, spec: {{containers: [
      {{name: pytorch, image: example.com/train, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}}}
"""


def count(api: httpx.Client, **query: Any) -> int:
    answer = api.get("jobs/", params={**query, "page_size": 1})
    return int(answer.raise_for_status().json()["count"])


def test_a_thousand_jobs_of_a_lost_cluster_run_elsewhere_within_a_minute(
    api: httpx.Client, simulator: Path, report: Callable[[str, dict[str, Any]], None]
) -> None:
    members = {
        name: MemberClient(parse_kubeconfig((simulator / f"{name}.kubeconfig").read_text()))
        for name in ("lost", "spare")
    }

    def copies(member: str) -> list[dict[str, Any]]:
        return list(members[member].list(COPIES)["items"])

    api.post("clusters/spare/cordon/").raise_for_status()
    for start in range(0, JOBS, 100):
        manifests = [JOB.format(i) for i in range(start, min(start + 100, JOBS))]
        api.post("apply", content="---".join([POLICY, *manifests])).raise_for_status()
    started_s = wait(lambda: count(api, state="Running") == JOBS, 900)
    api.post("clusters/spare/uncordon/").raise_for_status()
    disturb(simulator, "lost", "away")
    wait(lambda: "NoExecute" in str(api.get("clusters/lost/").json()["taints"]), 120)
    time.sleep(TOLERATED_S)
    moved_s = wait(lambda: len(copies("spare")) == JOBS, 600)
    running_s = moved_s + wait(lambda: count(api, state="Running", cluster="spare") == JOBS, 600)
    disturb(simulator, "lost", "back")
    cleared_s = wait(lambda: not copies("lost") and not members["lost"].list(PODS)["items"], 600)
    attempts = {copy["metadata"]["labels"]["convoy.dev/attempt"] for copy in copies("spare")}
    figures = {
        "copies_s": moved_s,
        "running_s": running_s,
        "old_copies_removed_s": cleared_s,
        "first_start_s": started_s,
    }
    report("failover", {"jobs": JOBS, **{name: round(seconds, 1) for name, seconds in figures.items()}})
    assert attempts == {"2"} and count(api, state="Running", cluster="spare") == JOBS
    assert moved_s <= WITHIN_S
