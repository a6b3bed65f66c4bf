"""The agent on a real kube-apiserver with the rights of its manifest: it stops what depends on the Lease, and nothing else."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from agent.main import MANIFEST
from fleet.core.members import fence, marks
from fleet.kube.resources import LEASES, PYTORCH_JOBS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberMissing
from tests.realkube.control_plane import needs_realkube
from tests.realkube.installing import Installed, installed
from tests.realkube.member import RealMember
from tests.simulator import casting
from tests.simulator.casting import until

pytestmark = needs_realkube

PATH = LEASES.path(fence.NAMESPACE, fence.NAME)
PATIENCE_S = 180.0
LONG_S = 3600


@pytest.fixture
def agent(members: list[RealMember]) -> Iterator[Installed]:
    """In a member that no fleet has joined."""
    member = members[-1]
    member.clear()
    with installed(member, list(yaml.safe_load_all(MANIFEST.read_text())), fence.NAMESPACE, "convoy-agent") as made:
        yield made
    with suppress(MemberMissing):
        member.client.delete(PATH)
    member.clear()


def renewed(client: MemberClient, duration_s: int) -> None:
    """As the fleet does it; returns when the agent has answered."""
    at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": "convoy-test", "leaseDurationSeconds": duration_s, "renewTime": at}
    client.merge_patch(PATH, {"spec": spec})
    until(lambda: annotation(client, PATH, fence.SEEN) == at, PATIENCE_S)


def annotation(client: MemberClient, path: str, name: str) -> str:
    return str((client.get(path)["metadata"].get("annotations") or {}).get(name, ""))


def has_lease(client: MemberClient) -> bool:
    try:
        return bool(client.get(PATH))
    except MemberMissing:
        return False


def job(name: str, *, fenced: bool) -> dict:
    manifest = casting.pytorch_job(name, workers=1, gpus=1, duration="100h")
    of_copy = {marks.JOB_UID: f"uid-of-{name}", marks.ATTEMPT: "1"}
    manifest["metadata"]["labels"] = {**of_copy, **({fence.LABEL: fence.DEPENDS} if fenced else {})}
    return manifest


def stopped(client: MemberClient, name: str) -> bool:
    return bool(annotation(client, PYTORCH_JOBS.path("default", name), fence.STOPPED))


def test_it_stops_what_depends_on_the_lease_when_it_expires_and_again_when_it_starts_anew(
    agent: Installed, tmp_path: Path
) -> None:
    client = agent.member.client
    with agent.running(tmp_path, "agent.main") as log:
        until(lambda: has_lease(client), PATIENCE_S)
        renewed(client, LONG_S)
        for name in ("depends", "free"):
            casting.submit(client, job(name, fenced=name == "depends"))
        until(lambda: list(casting.phases(client).values()) == ["Running"] * 4, PATIENCE_S)
        renewed(client, 3)
        until(lambda: stopped(client, "depends"), PATIENCE_S)
        until(lambda: set(casting.phases(client)) == {"free-master-0", "free-worker-0"}, PATIENCE_S)
        assert client.get(PYTORCH_JOBS.path("default", "depends"))["spec"]["runPolicy"]["suspend"] is True
        assert not stopped(client, "free")
    assert "not stopped" not in log.read_text() and "forbidden" not in log.read_text(), log.read_text()
    client.merge_patch(PYTORCH_JOBS.path("default", "depends"), {"spec": {"runPolicy": {"suspend": False}}})
    until(lambda: len(casting.phases(client)) == 4, PATIENCE_S)
    with agent.running(tmp_path, "agent.main"):
        until(lambda: len(casting.phases(client)) == 2, PATIENCE_S)  # it has started anew, and has seen no renewal


def test_it_may_do_no_more_than_that(agent: Installed) -> None:
    assert agent.may("patch", "kubeflow.org", "pytorchjobs") and agent.may("delete", "", "pods")
    for verb, group, resource, namespace in (
        ("get", "", "secrets", "default"),
        ("create", "", "pods", "default"),
        ("create", "", "pods/exec", "default"),
        ("patch", "", "pods", "default"),
        ("delete", "kubeflow.org", "pytorchjobs", "default"),
        ("create", "kubeflow.org", "pytorchjobs", "default"),
        ("patch", "coordination.k8s.io", "leases", "kube-system"),
        ("patch", "coordination.k8s.io", "leases", fence.NAMESPACE),
        ("create", "", "serviceaccounts/token", fence.NAMESPACE),
        ("impersonate", "", "users", ""),
    ):
        assert not agent.may(verb, group, resource, namespace), (verb, resource)
