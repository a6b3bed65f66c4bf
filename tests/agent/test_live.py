"""The agent in a simulated member that the fleet does not reach: jobs of every kind stop, by the operators of their kinds."""

from datetime import UTC, datetime
from pathlib import Path

import yaml

from agent.agent import Agent
from fleet.core.members import fence, marks
from fleet.kube.resources import NAMESPACES, PODS
from fleet.member.client import MemberClient
from jobs.kinds import registry
from jobs.kinds.base import Kind, marked, set_metadata
from tests.simulator.casting import member, phases, shape, until

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RUNTIME = yaml.safe_load((EXAMPLES / "trainingruntime.yaml").read_text().replace("20s", "10h"))
NOT_HERE = ("policy", "trainingruntime", "mpijob-v1")
"""What is no job, and the older of two versions: a member serves one of them."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def submit(client: MemberClient, example: str, *, fenced: bool = True) -> tuple[Kind, str]:
    manifest = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text().replace("20s", "10h"))
    manifest["metadata"]["namespace"] = "default"
    manifest["metadata"]["name"] += "" if fenced else "-free"
    kind, name = registry.kind_of(manifest["apiVersion"], manifest["kind"]), manifest["metadata"]["name"]
    kind.resolve(manifest, lambda *_: RUNTIME)
    body = marked(kind, manifest, {marks.JOB_UID: f"uid-of-{name}", marks.ATTEMPT: "1"})
    if fenced:
        set_metadata(body, "labels", {fence.LABEL: fence.DEPENDS})
    for resource, companion in kind.companions(body):
        client.create(resource.path("default"), companion)
    client.create(kind.resource.path("default"), body)
    return kind, name


def running_pods(client: MemberClient) -> set[str]:
    """Names of the jobs that have pods which have not ended."""
    pods = client.list(PODS.path("default"))["items"]
    alive = [pod for pod in pods if pod["status"]["phase"] in ("Running", "Pending")]
    return {pod["metadata"]["labels"][marks.JOB_UID].removeprefix("uid-of-") for pod in alive}


def test_it_stops_jobs_of_every_kind_and_no_others(tmp_path):
    examples = [path.stem for path in sorted(EXAMPLES.glob("*.yaml")) if path.stem not in NOT_HERE]
    assert len(examples) == len(registry.everything()) - 2, "every kind, but PyTorchJob and the older MPIJob"
    with member(tmp_path, shape=shape(nodes=8), time_scale=20.0, start_delay_s=0.05) as north:
        inside = MemberClient(north._server.inner_access(), pool=32)
        s = 0.0
        agent = Agent(inside, lambda: s, lambda: NOW)
        inside.create(NAMESPACES.path(), {"metadata": {"name": fence.NAMESPACE}})
        copies = [submit(inside, example) for example in examples]
        free = submit(inside, "paddlejob", fenced=False)[1]
        until(lambda: running_pods(inside) == {name for _, name in copies} | {free}, 120)
        until(lambda: "Pending" not in phases(inside).values(), 120)
        north.faults.away = True
        agent.look()
        s = 100.0
        until(lambda: agent.look() or running_pods(inside) == {free}, 120)
        for kind, name in copies:
            copy = inside.get(kind.resource.path("default", name))
            assert copy["metadata"]["annotations"][fence.STOPPED] == NOW.isoformat(), name
        inside.close()
