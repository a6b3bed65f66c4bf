"""The writes and reads of the supervisor at its member's API, from the event loop. Each is one request, in a thread."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fleet.kube.resources import PODS, Resource
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberDenied, MemberMissing
from jobs.kinds import registry
from jobs.runtime import notices as notice
from supervisor.core.facts import PodFacts

T = TypeVar("T")
THREADS = 16
"""Requests side by side."""


class Member:
    def __init__(self, client: MemberClient, threads: int = THREADS) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(threads, "member")

    async def annotate_pod(self, pod: PodFacts, notes: dict[str, str | None], *, version: str = "") -> Object:
        """Raises MemberChanged when it is another pod of the name, or with ``version`` another version of it."""
        meta: Object = {"uid": pod.uid, "annotations": notes}
        if version:
            meta["resourceVersion"] = version
        path = PODS.path(pod.namespace, pod.name)
        return await self._do(lambda: self._client.merge_patch(path, {"metadata": meta}))

    async def delete_pod(self, pod: PodFacts, grace_s: int | None) -> Object:
        path = PODS.path(pod.namespace, pod.name)
        return await self._do(lambda: self._client.delete(path, uid=pod.uid, grace_s=grace_s))

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return await self._do(lambda: self._client.get(resource.path(namespace, name)))

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        return await self._do(lambda: self._client.create(resource.path(namespace), body))

    async def replace(self, resource: Resource, namespace: str, name: str, body: Object) -> Object:
        return await self._do(lambda: self._client.replace(resource.path(namespace, name), body))

    async def patch(self, resource: Resource, namespace: str, name: str, body: Object) -> Object:
        return await self._do(lambda: self._client.merge_patch(resource.path(namespace, name), body))

    async def recorded_jobs(self) -> list[tuple[Resource, Object]]:
        """The jobs that have a record of notices, of all kinds that the member serves to us."""
        return await self._do(lambda: list(self._recorded()))

    def _recorded(self) -> Iterator[tuple[Resource, Object]]:
        for kind in registry.everything():
            try:
                for page in self._client.pages(kind.resource.path()):
                    for job in page.get("items") or []:
                        if notice.NOTICES in (job["metadata"].get("annotations") or {}):
                            yield kind.resource, job
            except (MemberDenied, MemberMissing):
                continue

    def close(self) -> None:
        self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _do(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
