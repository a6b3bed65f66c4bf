"""The pods and nodes of the member as far as they matter, and which jobs have to be looked at because something changed."""

import asyncio
from collections.abc import Iterable, Iterator

from fleet.kube.resources import NODES, PODS
from fleet.member.client import Object
from fleet.member.watching import Changed, Delivery, Item, Listed
from supervisor.core import facts, signals
from supervisor.core.facts import Key, PodFacts
from supervisor.core.signals import Signal


class Store:
    def __init__(self) -> None:
        self._pods: dict[Key, PodFacts] = {}
        self._jobs: dict[str, set[Key]] = {}
        self._by_node: dict[str, set[Key]] = {}
        self._nodes: dict[str, Signal | None] = {}
        self._listed: set[str] = set()
        self.changed: set[str] = set()
        """Jobs to look at."""
        self.delivered = asyncio.Event()
        """Something was delivered."""

    @property
    def synced(self) -> bool:
        """Whether pods and nodes have both been listed: before that a node that is not known is not one that is gone."""
        return {PODS.plural, NODES.plural} <= self._listed

    async def deliver(self, delivery: Delivery) -> None:
        match delivery:
            case Listed(resource, items) if resource == NODES:
                self._replace_nodes(items)
            case Listed(_, items):
                self._replace_pods(items)
            case Changed(resource, item, gone) if resource == NODES:
                self._set_node(item.key[1], item.value, gone=gone)
            case Changed(_, item, gone):
                self._drop(item.key) if gone else self.learn(item.value)
        if isinstance(delivery, Listed):
            self._listed.add(delivery.resource.plural)
        self.delivered.set()

    def learn(self, pod: PodFacts) -> None:
        """Keeps the newer one: the answer to a write may come before or after the watch's event."""
        known = self._pods.get(pod.key)
        if known is not None and known.uid == pod.uid and _is_older(pod.version, known.version):
            return
        if known is not None:
            self._unindex(known)
        self._pods[pod.key] = pod
        self._jobs.setdefault(pod.job, set()).add(pod.key)
        self._by_node.setdefault(pod.node, set()).add(pod.key)
        self.changed |= {pod.job} | ({known.job} if known else set())

    def learn_written(self, answer: Object) -> None:
        if answer.get("kind") == PODS.kind:
            self.learn(facts.read(answer))

    def forget(self, pod: PodFacts) -> None:
        """The member says that there is no such pod any more."""
        if (known := self._pods.get(pod.key)) is not None and known.uid == pod.uid:
            self._drop(pod.key)

    def pods_of(self, job: str) -> list[PodFacts]:
        return [self._pods[key] for key in sorted(self._jobs.get(job, ()))]

    def signals_of(self, pods: Iterable[PodFacts]) -> dict[str, Signal]:
        signals_by_pod = {pod.uid: signals.earliest(iter((pod.signal, self._of_node(pod)))) for pod in pods}
        return {uid: signal for uid, signal in signals_by_pod.items() if signal is not None}

    def jobs(self) -> Iterator[str]:
        return iter(self._jobs)

    def _of_node(self, pod: PodFacts) -> Signal | None:
        if not pod.node or not self.synced:
            return None
        return self._nodes[pod.node] if pod.node in self._nodes else signals.gone(pod.node)

    def _replace_nodes(self, items: list[Item]) -> None:
        gone = self._nodes.keys() - {item.key[1] for item in items}
        for name in gone:
            self._set_node(name, None, gone=True)
        for item in items:
            self._set_node(item.key[1], item.value, gone=False)
        self.changed |= set(self._jobs)

    def _set_node(self, name: str, signal: Signal | None, *, gone: bool) -> None:
        before = self._nodes.get(name)
        if gone:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = signal
        if gone or before != signal:
            self.changed |= {self._pods[key].job for key in self._by_node.get(name, ())}

    def _replace_pods(self, items: list[Item]) -> None:
        for key in self._pods.keys() - {item.key for item in items}:
            self._drop(key)
        for item in items:
            self.learn(item.value)

    def _drop(self, key: Key) -> None:
        known = self._pods.pop(key, None)
        if known is not None:
            self._unindex(known)
            self.changed.add(known.job)

    def _unindex(self, pod: PodFacts) -> None:
        for index, name in ((self._jobs, pod.job), (self._by_node, pod.node)):
            keys = index.get(name, set())
            keys.discard(pod.key)
            if not keys:
                index.pop(name, None)


def _is_older(version: str, known: str) -> bool:
    """Versions are numbers in every API server there is; where they are not, the later word counts."""
    return version.isdigit() and known.isdigit() and int(version) < int(known)
