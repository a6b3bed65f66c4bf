"""A member that is cut off from the fleet, with an agent in it: two clocks that are moved by hand, and one API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

from agent.agent import Agent
from fleet.core.members import health as cluster_health
from fleet.core.members.health import Health
from fleet.kube.resources import NAMESPACES
from fleet.models import Cluster, MemberAgent
from fleet.services.clusters import agents
from tests.support.passive import PassiveMember, passive_member


class CutOff:
    """``s`` are seconds since the beginning, by the fleet's clock and by the agent's."""

    def __init__(self, member: PassiveMember) -> None:
        self.member, self.client = member, member.client
        self.began, self.s = timezone.now(), 0.0
        self.client.create(NAMESPACES.path(), {"metadata": {"name": "convoy-system"}})
        self.agent = self.another_agent()

    def another_agent(self) -> Agent:
        return Agent(self.client, lambda: self.s, lambda: self.now)

    @property
    def now(self) -> datetime:
        return self.began + timedelta(seconds=self.s)

    def to(self, s: float) -> None:
        self.s = s

    def renew(self) -> None:
        """The fleet renews what is due."""
        for thread in agents.start(self.now):
            thread.join(60)

    def live(self, until: float, *, agent: bool = True) -> None:
        """Fleet and agent do what they do every few seconds."""
        while self.s < until:
            self.renew()
            if agent:
                self.agent.look()
            self.s = min(self.s + 10, until)

    def known(self) -> MemberAgent:
        return MemberAgent.objects.get(cluster=self.member.cluster)

    def state(self, state: Cluster.State) -> None:
        """As the heartbeat writes it."""
        row = Cluster.objects.get(pk=self.member.cluster.pk)
        row.state = state
        row.looked_at = None
        row.taints = cluster_health.taints(row.taints, Health(cluster_health.State(state), "", "", self.now), self.now)
        row.save(update_fields=["state", "taints", "looked_at"])


@contextmanager
def cut_off(home: Path) -> Iterator[CutOff]:
    """The member with its agent, whose Lease was renewed and seen several times."""
    with passive_member(home) as member:
        made = CutOff(member)
        made.agent.look()
        made.live(70)
        yield made
