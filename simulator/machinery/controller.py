"""The base of all controllers: shared informers, a queue of keys, and workers that reconcile one key at a time.

Errors of the API server are handled here, by retrying the key later.
"""

import logging
import threading
from dataclasses import dataclass, field

from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.discovery import Apis
from fleet.member.errors import MemberAway, MemberChanged, MemberError, MemberMissing
from simulator.machinery.clock import Clock
from simulator.machinery.informer import Informer
from simulator.machinery.workqueue import WorkQueue

log = logging.getLogger(__name__)


@dataclass
class Cluster:
    """One API server as its controllers see it: a client, a clock, and one shared cache per kind."""

    client: MemberClient
    clock: Clock
    stop: threading.Event = field(default_factory=threading.Event)
    apis: Apis = field(default_factory=dict)
    """The kinds that the server serves. Controllers of other kinds do nothing."""
    _informers: dict[Resource, Informer] = field(default_factory=dict)

    def serves(self, resource: Resource) -> bool:
        return resource.kind in self.apis.get(resource.api_version, {})

    def informer(self, resource: Resource) -> Informer:
        return self._informers.setdefault(resource, Informer(self.client, resource, self.stop))

    def start(self, timeout_s: float = 30.0) -> None:
        """Starts the informers and waits until each has its first list."""
        for informer in self._informers.values():
            informer.thread.start()
        for resource, informer in self._informers.items():
            if not informer.synced.wait(timeout_s):
                raise TimeoutError(f"{self.client.access.server} does not list {resource.plural}")


class Controller:
    """Subclasses listen to informers, add keys to the queue, and implement `reconcile`."""

    name = "controller"
    workers = 1

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.clock = cluster.clock
        self.queue = WorkQueue()
        self._failures: dict[str, int] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"{self.name}-{i}", daemon=True) for i in range(self.workers)
        ]

    def reconcile(self, key: str) -> float | None:
        """Reconciles one object. Returns after how many (real) seconds to do so again, or None."""
        raise NotImplementedError

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.queue.close()
        for thread in self._threads:
            thread.join(5)

    def _work(self) -> None:
        while (key := self.queue.take()) is not None:
            try:
                requeue_s = self._attempt(key)
            finally:
                self.queue.done(key)
            if requeue_s is not None:
                self.queue.add_after(key, requeue_s)

    def _attempt(self, key: str) -> float | None:
        try:
            requeue_s: float | None = self.reconcile(key)
        except (MemberChanged, MemberMissing):
            return 0.05
        except MemberError as e:
            tries = self._failures[key] = self._failures.get(key, 0) + 1
            if not isinstance(e, MemberAway):
                log.warning("%s: %s: %s", self.name, key, e)
            return min(0.05 * 2.0 ** min(tries, 6), 2.0)
        except Exception:  # noqa: BLE001 - one broken object must not end the worker that serves all the others
            log.exception("%s: %s", self.name, key)
            return 5.0
        self._failures.pop(key, None)
        return requeue_s
