"""A real member that is cut off, with the agent in it: its copy stops by itself, and only then does another one run."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import yaml
from django.db import connections
from django.utils import timezone

from agent.main import MANIFEST
from fleet.core.members import fence
from fleet.kube.resources import LEASES
from fleet.member.errors import MemberMissing
from fleet.models import Cluster, Event
from fleet.services.clusters import agents
from jobs.core.policies.unreachable import UNREACHABLE
from jobs.models import Attempt, Work
from tests.realkube.control_plane import needs_realkube
from tests.realkube.installing import installed
from tests.support.world import POLICY, pytorch_job

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]
PATIENCE_S = 180.0


@pytest.fixture(autouse=True)
def short_times(settings, monkeypatch):
    """The job leaves 26 s after the last renewal; an agent of a busy machine may answer seconds late."""
    settings.CONVOY_MEMBERS = replace(settings.CONVOY_MEMBERS, fence_s=10)
    monkeypatch.setattr(fence, "_MARGIN", timedelta(seconds=10))


@contextmanager
def renewing() -> Iterator[None]:
    """The fleet renews its Leases, as the beat lets it do."""
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(0.5):
            for thread in agents.start(timezone.now()):
                thread.join(60)
        connections.close_all()

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def has_agent(name: str) -> bool:
    renewals = agents.of(Cluster.objects.get(name=name))
    return renewals is not None and renewals.has_agent(timezone.now())


def fenced_job() -> tuple[str, str]:
    policy, job = yaml.safe_load(POLICY), yaml.safe_load(pytorch_job("llama", duration="100h"))
    policy["metadata"]["annotations"] = {UNREACHABLE: "Fence"}
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    return yaml.safe_dump(policy), yaml.safe_dump(job)


def test_a_copy_that_is_cut_off_stops_before_another_one_runs_and_is_removed_when_its_member_returns(
    real, members, tmp_path
):
    north = members[0]
    manifests = list(yaml.safe_load_all(MANIFEST.read_text()))
    with installed(north, manifests, fence.NAMESPACE, "convoy-agent") as made, made.running(tmp_path, "agent.main"):
        lease = LEASES.path(fence.NAMESPACE, fence.NAME)

        def has_lease() -> bool:
            with suppress(MemberMissing):
                return bool(north.client.get(lease))
            return False

        real.world.until(has_lease, "the agent has made its Lease", patience_s=PATIENCE_S)
        real.join("north")
        with renewing():
            real.world.until(lambda: has_agent("north"), "the agent answers", patience_s=PATIENCE_S)
            real.apply(*fenced_job())
            real.world.expect("llama", "Running", on="north")
            assert Work.objects.get().fenced
            real.join("south")
            real.world.until(lambda: has_agent("north"), "the agent answers the last renewals", patience_s=PATIENCE_S)
        # None is tried between the cut and the moment at which the fleet notices it: those would not be answered.
        assert agents.of(Cluster.objects.get(name="north")).is_answered
        north.line.cut()
        second = real.world.expect("llama", "Running", on="south", patience_s=PATIENCE_S)
        stopped = real.copy("north", "llama")
        assert stopped["spec"]["runPolicy"]["suspend"] is True and not real.pods("north")
        stopped_at = datetime.fromisoformat(stopped["metadata"]["annotations"][fence.STOPPED])
        assert stopped_at < Work.objects.get(attempt=2).applied_at
        north.line.mend()
        with renewing():
            real.world.until(lambda: real.clusters_with("llama") == ["south"], "one copy is left")
            assert real.world.expect("llama", "Running").attempt == second.attempt == 2
        assert Attempt.objects.get(number=1).outcome == "Lost"
        assert not Event.objects.filter(reason="TwoCopiesPossible").exists()
        north.client.delete(lease)
