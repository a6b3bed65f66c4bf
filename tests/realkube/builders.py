"""The world of the stories with real members: the same verbs, in a namespace of its own for each test."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import yaml
from django.utils import timezone

from fleet.kube.resources import PODS, PYTORCH_JOBS, Resource
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberMissing
from fleet.models import Node
from fleet.services.clusters import clusters
from jobs.models import Dependent
from tests.support.world import World


class Joinable(Protocol):
    """A member as the fleet is told of it."""

    name: str
    client: MemberClient

    def kubeconfig(self) -> dict[str, Any]: ...

    def stop(self) -> None: ...

    def finish(self, pod: str) -> bool: ...


class RealWorld:
    def __init__(self, world: World, members: Sequence[Joinable], namespace: str) -> None:
        self.world, self.namespace = world, namespace
        self._members = {member.name: member for member in members}

    def join(self, *names: str) -> list[Joinable]:
        """Returns when the fleet knows their nodes."""
        for name in names:
            member = self._members[name]
            self.world.members[name] = member  # type: ignore[assignment]  # the world stops it, and asks for its name
            self.world.clients[name] = member.client
            clusters.join(name, yaml.safe_dump(member.kubeconfig()), by="test", now=timezone.now())
        for name in names:
            nodes = Node.objects.filter(cluster__name=name)
            self.world.until(lambda nodes=nodes: nodes.count() == 2, f"{name} shows its nodes")
        return [self._members[name] for name in names]

    def apply(self, *texts: str) -> None:
        """In the namespace of this test."""
        manifests: list[Any] = [manifest for text in texts for manifest in yaml.safe_load_all(text)]
        for manifest in manifests:
            if manifest["kind"] not in Dependent.CLUSTER_WIDE:
                manifest["metadata"]["namespace"] = self.namespace
        self.world.apply(yaml.safe_dump_all(manifests))

    def copy(self, member: str, name: str, resource: Resource = PYTORCH_JOBS) -> Object | None:
        try:
            return self._members[member].client.get(resource.path(self.namespace, name))
        except MemberMissing:
            return None

    def pods(self, member: str) -> list[Object]:
        pods: list[Object] = self._members[member].client.list(PODS.path(self.namespace))["items"]
        return pods

    def finish(self, name: str) -> None:
        """As that of `World`, with the real ones."""
        for member in self.world.members:
            self.world.end_pods(name, partial(self.pods, member), self._members[member].finish)

    def clusters_with(self, name: str, resource: Resource = PYTORCH_JOBS) -> list[str]:
        """Names of the joined members that have a copy of the job."""
        return [member for member in self.world.members if self.copy(member, name, resource)]


def is_kept(kept: object, sent: object) -> bool:
    """Whether an API server has dropped and changed nothing of what it was sent; it may have added to it."""
    if isinstance(sent, dict):
        return isinstance(kept, dict) and all(key in kept and is_kept(kept[key], value) for key, value in sent.items())
    if isinstance(sent, list):
        return isinstance(kept, list) and len(kept) == len(sent) and all(map(is_kept, kept, sent))
    return kept == sent
