"""A member that is an API server alone: nothing runs in it, so each object stays as the test and the fleet wrote it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import yaml
from django.utils import timezone

from fleet.kube.resources import Resource
from fleet.member.client import MemberClient, Object
from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs.services.dispatch import dispatcher
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle import works
from simulator.apiserver.server import ApiServer
from simulator.member import define_in

CLAIM = timedelta(seconds=40)
"""Longer than a claim lasts."""


class PassiveMember:
    def __init__(self, server: ApiServer, name: str) -> None:
        self.client = MemberClient(server.access())
        self.kubeconfig = server.kubeconfig()
        now = timezone.now()
        self.cluster = clusters.join(name, yaml.safe_dump(self.kubeconfig), by="test", now=now)
        offered = {"cpu": 10**6, "memory": 2**50, "nvidia.com/gpu": 8, "pods": 10**4}
        self.cluster.nodes.create(name="node", ready=True, allocatable=offered)
        Cluster.objects.filter(pk=self.cluster.pk).update(synced_at=now)

    def items(self, resource: Resource, namespace: str = "default") -> list[Object]:
        return list(self.client.list(resource.path(namespace))["items"])

    def collect_garbage(self, resource: Resource, namespace: str = "default") -> None:
        """What is deleted in the foreground has no pods here: it goes at once."""
        for found in self.items(resource, namespace):
            if found["metadata"].get("deletionTimestamp"):
                path = resource.path(namespace, found["metadata"]["name"])
                self.client.merge_patch(path, {"metadata": {"finalizers": None}})

    def report(self, resource: Resource, namespace: str = "default") -> None:
        """The member's watch shows every object as it is now."""
        JobEventHandler().on_update(self.cluster.pk, resource, self.items(resource, namespace), timezone.now())

    def work(self, resource: Resource, now: datetime | None = None) -> None:
        """Workers do everything that is due, and try again what could not be done at once."""
        for turn in range(6):
            moment = (now or timezone.now()) + turn * CLAIM
            for pk in list(works.due(moment).order_by("attempt").values_list("pk", flat=True)):
                dispatcher.push(pk, partial(_same, moment))
            self.collect_garbage(resource)


def _same(moment: datetime) -> datetime:
    return moment


@contextmanager
def passive_member(
    home: Path, name: str = "north", *, serves: Mapping[str, str] | None = None
) -> Iterator[PassiveMember]:
    server = ApiServer(name, home / name)
    define_in(server.catalog, serves)
    server.start()
    made = PassiveMember(server, name)
    yield made
    made.client.close()
    server.stop()
