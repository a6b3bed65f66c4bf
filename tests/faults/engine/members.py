"""The three member clusters of a world, what can be done to their APIs, and what is in them at one moment.

They live in the engine's own process. What is read of them is read from their stores, on the thread that writes these, so
that it is of one moment and no fault stands in between.
"""

import asyncio
import contextlib
import http.client
import json
import shutil
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from simulator.apiserver import server
from simulator.apiserver.faulty import Faulty
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from simulator.node.lifecycle import END
from simulator.node.nodes import Pool
from tests.faults.engine import objects
from tests.faults.engine.schedules import Fault
from tests.faults.engine.wire import AGAIN, Eager, Line, Recorder, Write

NAMES = ("north", "south", "west")
GPUS = 8
NODES = 2
TIME_SCALE = 20.0
_NEVER_S = 3600.0
_ANSWERS_S = 5.0
_PODS = ("", "pods")
_PYTORCH = ("kubeflow.org", "pytorchjobs")
_NOTICES = "convoy.dev/notices"
_KINDS = (
    _PODS, ("", "nodes"), _PYTORCH, ("batch", "jobs"), ("scheduling.sigs.k8s.io", "podgroups"),
    ("scheduling.x-k8s.io", "podgroups"),
)  # fmt: skip
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Contents:
    """All objects of the kinds the judge looks at."""

    pods: list[Object]
    nodes: list[Object]
    copies: list[Object]
    groups: list[Object]


class Members:
    def __init__(self, homes: Path, *, slow: float = 1.0) -> None:
        self._homes, self._slow = homes, slow
        self._members: dict[str, SimulatedMember] = {}
        self._backups: dict[str, Path] = {}
        self.writes: list[Write] = []
        """Requests of the product for copies, in the order in which the members were done with them."""
        self._lines = {name: Line(self.writes) for name in NAMES}

    def start(self, name: str) -> None:
        def recorded(app: Any, faults: Any, spares: Any, stopped: Any) -> Eager:
            return Eager(Faulty(Recorder(app, name, self._lines[name], spares), faults, spares, stopped))

        server.Faulty = recorded  # type: ignore[assignment, misc]
        shape = Shape((Pool("pool", NODES, "64", "512Gi", GPUS),), {})
        member = SimulatedMember(name, self._homes / name, shape, time_scale=TIME_SCALE)
        member.start()
        self._members[name] = member

    def stop(self) -> None:
        for member in self._members.values():
            member.stop()

    def kubeconfig(self, name: str) -> dict[str, object]:
        return self._members[name].kubeconfig()

    def contents(self) -> dict[str, Contents]:
        return {name: _contents(member) for name, member in self._members.items()}

    def end_programs(self, jobs: Iterable[str]) -> None:
        """The running pods of these jobs succeed."""
        prefixes = tuple(f"{job}-" for job in jobs)
        for member in self._members.values():
            asyncio.run_coroutine_threadsafe(_end_pods(member, prefixes), member._server._loop).result(20)

    def give_notice(self, job: str) -> bool:
        """The next step of a supervisor in whichever member runs this job: it records, suspends, and records that it has.

        Returns whether that was the last.
        """
        steps = (
            asyncio.run_coroutine_threadsafe(_notice_step(member, job), member._server._loop).result(20)
            for member in self._members.values()
        )
        return any(steps)

    def back_up(self, name: str) -> None:
        """What a restore will bring back."""
        backup = self._homes / f"{name}.backup"
        store = self._members[name]._server.store

        async def copy() -> None:
            import sqlite3

            with sqlite3.connect(backup) as target:
                store._db.backup(target)

        backup.unlink(missing_ok=True)
        asyncio.run_coroutine_threadsafe(copy(), self._members[name]._server._loop).result(20)
        self._backups[name] = backup

    def restore(self, name: str) -> None:
        """The member stops, and starts again with the objects it had at its backup."""
        self._members[name].stop()
        for suffix in ("-wal", "-shm"):
            (self._homes / name / f"objects.sqlite3{suffix}").unlink(missing_ok=True)
        shutil.copy(self._backups[name], self._homes / name / "objects.sqlite3")
        self.start(name)

    def strike(self, name: str, fault: Fault) -> None:
        faults = self._members[name].faults
        match fault:
            case Fault.AWAY:
                faults.away = True
            case Fault.CUT:
                faults.slow_s, faults.stale_watch = _NEVER_S, True
            case Fault.SLOW:
                faults.slow_s = 0.8 * self._slow
            case Fault.LATE:
                faults.slow_s = 2.0 * self._slow
            case Fault.FLAKY:
                faults.error_rate = 0.3
            case Fault.DROP:
                faults.reset_rate = 0.4
            case Fault.OLD:
                faults.away = True
            case _:
                raise ValueError(fault)

    def heal(self, name: str, fault: Fault) -> None:
        if fault is Fault.OLD:
            self.restore(name)
        faults = self._members[name].faults
        faults.away = faults.stale_watch = False
        faults.slow_s = faults.error_rate = faults.reset_rate = 0.0
        if fault is Fault.LATE:
            self._deliver_again(name)

    def _deliver_again(self, name: str) -> None:
        """Each request for a copy that the member has answered arrives once more, as from a proxy that tries again."""
        port = int((self._homes / name / "port").read_text())
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for creation in tuple(self._lines[name].creations):
            line = http.client.HTTPSConnection("127.0.0.1", port, timeout=_ANSWERS_S, context=context)
            headers = {"Authorization": creation.token, "Content-Type": "application/json", "User-Agent": AGAIN}
            with contextlib.closing(line), contextlib.suppress(OSError, http.client.HTTPException):
                line.request("POST", creation.path, creation.body, headers)
                line.getresponse().read()


async def _end_pods(member: SimulatedMember, prefixes: tuple[str, ...]) -> None:
    store = member._server.store
    for pod in list(store.of_kind(_PODS)):
        notes = pod["metadata"].get("annotations") or {}
        is_running = (pod.get("status") or {}).get("phase") == "Running"
        if is_running and END not in notes and pod["metadata"]["name"].startswith(prefixes):
            metadata = {**pod["metadata"], "annotations": {**notes, END: "0 ended"}}
            store.put(_PODS, {**pod, "metadata": metadata})


async def _notice_step(member: SimulatedMember, job: str) -> bool:
    store = member._server.store
    copies = [copy for copy in store.of_kind(_PYTORCH) if objects.name(copy) == job and not objects.condition(copy)]
    for copy in (copy for copy in copies if not copy["metadata"].get("deletionTimestamp")):
        notes = copy["metadata"].get("annotations") or {}
        record = json.loads(notes[_NOTICES]) if _NOTICES in notes else None
        if record is None:
            record = _notice(copy["metadata"]["uid"])
        elif not objects.is_suspended(copy):
            policy = {**(copy["spec"].get("runPolicy") or {}), "suspend": True}
            copy = {**copy, "spec": {**copy["spec"], "runPolicy": policy}}
        else:
            record["notices"][0]["stopped"] = _stamp(datetime.now(UTC))
        metadata = {**copy["metadata"], "annotations": {**notes, _NOTICES: json.dumps(record)}}
        store.put(_PYTORCH, {**copy, "metadata": metadata})
        return "stopped" in record["notices"][0]
    return False


def _notice(uid: str) -> Object:
    """As a supervisor writes it of a node whose loss leaves too few pods."""
    now = datetime.now(UTC)
    times = {"at": _stamp(now), "deadline": _stamp(now + timedelta(minutes=1))}
    pods = {f"{name}": {"uid": uid, "heard": times["at"]} for name in ("master-0", "worker-0")}
    about = {"id": f"notice-{uid}", "cause": "spot", "node": "pool-0", "scope": "Job", "pods": pods}
    return {"uid": uid, "notices": [{**about, **times}]}


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _contents(member: SimulatedMember) -> Contents:
    store = member._server.store

    async def read() -> Contents:
        objects = {kind: list(store.of_kind(kind)) for kind in _KINDS}
        copies = objects["kubeflow.org", "pytorchjobs"] + objects["batch", "jobs"]
        groups = objects["scheduling.sigs.k8s.io", "podgroups"] + objects["scheduling.x-k8s.io", "podgroups"]
        return Contents(objects["", "pods"], objects["", "nodes"], copies, groups)

    return asyncio.run_coroutine_threadsafe(read(), member._server._loop).result(20)
