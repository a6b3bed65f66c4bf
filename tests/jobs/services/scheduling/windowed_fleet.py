"""A random fleet whose queues have windows; and what must be true of the jobs that start before one, by arithmetic.

Pods take whole nodes of one cluster, so that what a window promises can be had wherever its GPUs are. Windows raise a min, and
those of all queues are never more than the fleet has: within its min outside windows no job may wait for any of them.
"""

import json
from datetime import datetime, timedelta

import yaml

from jobs.core.reasons import Code
from jobs.models import Job
from quotas.services import windows
from tests.jobs.services.scheduling.served_fleet import HOLDING, Row, ServedFleet, rows
from tests.support.books import GPU

LEAD = timedelta(minutes=30)


class WindowedFleet(ServedFleet):
    def __init__(self, seed: int) -> None:
        self.opens: dict[str, list[tuple[datetime, datetime, int]]] = {}
        """By queue its windows: begin, end and the min of that time."""
        self.lasts: dict[str, timedelta] = {}
        """Of the jobs that say how long they run at most."""
        self.base: dict[str, int] = {}
        self.judged = 0
        """How many starts before a window were judged."""
        super().__init__(seed)

    def make_nodes(self) -> list[list[int]]:
        return [[8] * self.rng.randint(4, 6)]

    def size(self, leaf: str) -> dict[str, int]:
        return {"workers": self.rng.choice([0, 0, 1, 2]), "gpus": 8}

    def settings_of(self, name: str) -> dict[str, str]:
        self.base = self.base or dict(self.low)
        spare = (self.total - sum(self.base.values())) // len(self.base)
        begin, stated = self.now, []
        self.opens[name] = []
        for _ in range(self.rng.randint(0, 4)):
            begin += timedelta(seconds=self.rng.randint(60, 9000))
            end = begin + timedelta(seconds=self.rng.randint(600, 9000))
            low = min(self.base[name] + self.rng.randint(0, spare), self.high[name])
            self.opens[name].append((begin, end, low))
            times = {"from": begin.isoformat(), "to": end.isoformat(), "lead": f"{LEAD.seconds}s"}
            stated.append({**times, "min": {GPU: low}})
            begin = end
        return {"windows": json.dumps(stated)} if stated else {}

    def make_job(self, leaf: str, priority: int, firm: bool, size: dict[str, int]) -> str:
        body = yaml.safe_load(super().make_job(leaf, priority, firm, size))
        if self.rng.random() < 0.5:
            name, lasts = body["metadata"]["name"], timedelta(seconds=self.rng.choice([600, 3600, 20000]))
            self.lasts[name] = lasts
            for role in body["spec"]["pytorchReplicaSpecs"].values():
                labels = role["template"].setdefault("metadata", {})
                labels["annotations"] = {"convoy.dev/duration": f"{lasts.seconds}s"}
        return yaml.safe_dump(body)

    def cycle(self) -> None:
        windows.review(self.now)
        self.low = {name: self._low_at(name, self.now) for name in self.base}
        nominated = set(Job.objects.filter(reason_code=Code.WAITING_FOR_RECLAIM).values_list("name", flat=True))
        before = {row.name for row in rows() if row.state in HOLDING}
        super().cycle()
        now = [row for row in rows() if row.state in HOLDING]
        started = [row for row in now if row.name not in before]
        if not any(row.name in nominated for row in started):
            self._judge_starts(started, now)

    def may_wait(self, row: Row) -> bool:
        """For a window ahead, unless it is within what its queue is promised at any time."""
        if not Job.objects.filter(name=row.name, reason_code=Code.WINDOW_AHEAD).exists():
            return False
        used = sum(other.gpus for other in rows() if other.leaf == row.leaf and other.state in HOLDING)
        assert used + row.gpus > self.base[row.leaf], f"{row} waits for a window within its min of any time"
        return True

    def _low_at(self, name: str, at: datetime) -> int:
        return next((low for begin, end, low in self.opens[name] if begin <= at < end), self.base[name])

    def _judge_starts(self, started: list[Row], now: list[Row]) -> None:
        """What begins while they may still run has its min beside what is in use then, as far as that is known."""
        for begin in sorted({each[0] for each in sum(self.opens.values(), []) if each[0] > self.now}):
            stays = [row for row in now if self._may_run_at(row, begin)]
            reaching = [row for row in started if row in stays and (row.name in self.lasts or begin - LEAD <= self.now)]
            used = {name: sum(row.gpus for row in stays if row.leaf == name) for name in self.base}
            if not reaching or any(used[row.leaf] <= self._low_at(row.leaf, begin) for row in started):
                continue
            lows = {name: self._low_at(name, begin) for name in self.base}
            kept = {name: low if low > self.base[name] else 0 for name, low in lows.items()}
            taken = sum(max(used[name], kept[name]) for name in self.base)
            assert taken <= self.total, f"{reaching} started in the place of the window at {begin}: {used} in use then"
            self.judged += 1

    def _may_run_at(self, row: Row, at: datetime) -> bool:
        if row.name not in self.lasts or row.admitted_at is None:
            return True
        ends = row.admitted_at + self.lasts[row.name]
        return ends > at or ends <= self.now
