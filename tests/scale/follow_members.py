"""Members for the benchmark ``follow``, in a process of their own: one HTTP/2 server under many path prefixes.

``python -m tests.scale.follow_members HOME`` reads from ``HOME/plan.json`` how many members, nodes and pods there are and the
labels of own pods, prints its port, and on a line of standard input changes own pods at a steady rate: the n-th change sets
the pod's restarts to n, and is due n/rate seconds after the moment that is printed.
"""

import asyncio
import json
import random
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.http2_server import Http2Server

PAGE_SIZE = 500
_AT_ONCE_S = 0.02


@dataclass(frozen=True)
class Plan:
    members: int
    nodes: int
    pods: int
    """On each node; ``own`` of each member's are Convoy's."""
    own: int
    rate: int
    seconds: int
    labels: dict[str, dict[str, str]]
    """Of each member's own pods."""


class Members:
    def __init__(self, plan: Plan, home: Path) -> None:
        self.plan, self.server = plan, Http2Server(home / "pki", self.answer)
        self._watches: dict[str, tuple[object, str]] = {}

    def answer(self, target: str) -> tuple[int, bytes, bool]:
        parts = urlsplit(target)
        _, member, *path = parts.path.split("/")
        query = parse_qs(parts.query)
        if "watch" in query:
            return 200, b"", False
        own_only = "labelSelector" in query
        items, more = ("", "") if own_only else self._page(member, path[-1], int(query.get("continue", ["0"])[0]))
        return 200, f'{{"metadata":{{"resourceVersion":"1"{more}}},"items":[{items}]}}'.encode(), True

    def _page(self, member: str, kind: str, start: int) -> tuple[str, str]:
        make, count = {
            "nodes": (self._node, self.plan.nodes),
            "pods": (lambda number: self.pod(member, number, 0), self.plan.nodes * self.plan.pods),
        }.get(kind, (str, 0))
        end = min(start + PAGE_SIZE, count)
        return ",".join(make(number) for number in range(start, end)), f',"continue":"{end}"' if end < count else ""

    def _node(self, number: int) -> str:
        return json.dumps(
            {
                "metadata": {
                    "name": f"node-{number:03}",
                    "labels": {f"label-{n}.example.com/x": "y" * 20 for n in range(15)},
                },
                "spec": {},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "allocatable": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"},
                },
            }
        )

    def pod(self, member: str, number: int, restarts: int) -> str:
        is_own = number < self.plan.own
        container = {
            "name": "main",
            "image": "registry.example.com/team/trainer:2026.11.1",
            "resources": {"requests": {"cpu": "4", "memory": "16Gi"}},
            "env": [{"name": f"VARIABLE_{n}", "value": "value" * 4} for n in range(8)],
        }
        status = {"name": "main", "ready": True, "restartCount": restarts, "state": {"running": {}}}
        return json.dumps(
            {
                "metadata": {
                    "name": f"workload-{number:05}-7d9f8b6c5d",
                    "namespace": "team",
                    "uid": f"{member}-{number}",
                    "resourceVersion": str(restarts + 1),
                    "creationTimestamp": "2026-11-01T00:00:00Z",
                    "labels": self.plan.labels[member] if is_own else {"app": "workload"},
                },
                "spec": {"nodeName": f"node-{number % self.plan.nodes:03}", "containers": [container]},
                "status": {"phase": "Running", "startTime": "2026-11-01T00:00:00Z", "containerStatuses": [status]},
            }
        )

    async def change(self) -> None:
        """Changes own pods, as many at once as are due."""
        watches = self._pod_watches()
        rng, plan, began, number = random.Random(0), self.plan, time.time(), 0
        print(began, flush=True)
        while number < plan.rate * plan.seconds:
            await asyncio.sleep(_AT_ONCE_S)
            while number < min((time.time() - began) * plan.rate, plan.rate * plan.seconds):
                number += 1
                member = f"m{rng.randrange(plan.members)}"
                connection, target = watches[member]
                pod = self.pod(member, rng.randrange(plan.own), number)
                connection.send(target, b'{"type":"MODIFIED","object":' + pod.encode() + b"}\n")

    def _pod_watches(self) -> dict[str, tuple[object, str]]:
        open_watches = {}
        for connection in self.server.open:
            for target in connection.streams:
                if "/api/v1/pods?" in target and "watch=1" in target:
                    open_watches[target.split("/")[1]] = connection, target
        return open_watches


def main(home: Path) -> None:
    members = Members(Plan(**json.loads((home / "plan.json").read_text())), home)
    loop = members.server.loop
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(members.server.start(), loop).result(10)
    print(members.server.port, flush=True)
    sys.stdin.readline()
    asyncio.run_coroutine_threadsafe(members.change(), loop).result()
    sys.stdin.readline()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
