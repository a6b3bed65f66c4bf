"""One schedule from its beginning to its verdict: a product in forks, users, strikes, and a judge that looks on."""

import contextlib
import json
import os
import random
import signal
import time
import urllib.error
import urllib.request
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from deploy.bootstrap import ports
from deploy.supervisor import product
from deploy.supervisor.broker import Broker
from tests.faults.engine import cost, judge, members, objects, rows, template
from tests.faults.engine.judge import Judge
from tests.faults.engine.members import Members
from tests.faults.engine.nursery import Nursery, use
from tests.faults.engine.schedules import Fault, Schedule, Strike, Target
from tests.faults.engine.servers import Postgres, Valkey
from tests.faults.engine.steps import Switchboard
from tests.faults.engine.users import CAREFUL, LASTING, NOTICED, Users
from tests.faults.engine.verdict import Verdict

REACHED_S = 45.0
"""A step that is not reached by then is not waited for: the strike comes at any moment."""
SETTLES_S = 40.0
"""Without any change of a job, a work or a pod: then what is wrong stays wrong, however slow the machine is."""
LONGEST_S = 180.0
STARVED_S = 1.0
"""Longer than this, and members do not answer the product's probes in time."""
SLOWED = 20.0
"""Having waited for a processor so many times as long as it had one, a world did not keep its own times."""
READY_S = 60.0
RESTART_S = 0.3
LOOK_S = 0.25
BACKUP_S = 2.5
_PROCESSES = ("web", "kube", "worker-1", "worker-2", "watcher-1", "watcher-2", "beat")
_CLOCK_S = 3600.0
_WITHOUT_WORKERS = (Target.WEB, Target.KUBE, Target.WATCHER, Target.BEAT)
"""Targets that dispatch nothing."""


class World:
    def __init__(self, schedule: Schedule, home: Path, *, server: bool, slow: float = 1.0) -> None:
        """``slow``: how many times as long as planned faults last (`settings.SLOW`)."""
        self._schedule, self._home, self._slow = schedule, home, slow
        self._dice = random.Random(schedule.seed + 1)
        self._web, self._kube, valkey, postgres, *rest = free_ports(4 + len(members.NAMES))
        self._valkey = Valkey(home, valkey, home / "valkey.log")
        self._postgres = Postgres(home / "postgres", postgres, home / "postgres.log") if server else None
        self._places = dict(zip(members.NAMES, rest, strict=True))
        self._board = Switchboard()
        self._members = Members(home / "members", slow=slow)
        self._pids: dict[str, int] = {}
        self._absent_until: dict[str, float] = {}
        self._healing: list[tuple[float, Strike, str]] = []
        self.verdict = Verdict(schedule.seed, str(schedule), [])

    @property
    def _database(self) -> dict[str, Any]:
        return self._postgres.database() if self._postgres else {"NAME": str(self._home / "database.sqlite3")}

    def run(self) -> Verdict:
        began = time.monotonic()
        self._start()
        users = self._users()
        court = Judge(members.NODES * members.GPUS, users.ends)
        users.start()
        self._strike_all(users, court)
        self._settle(users, court)
        users.stopping.set()
        users.join(10)
        self.verdict.faults += self._evidence(users, court)
        self.verdict.looks, self.verdict.took_s = court.looks, time.monotonic() - began
        self.verdict.processor_s = cost.processor_s([os.getpid()])
        self.verdict.waited_s = cost.waited_s([os.getpid()])
        if self.verdict.waited_s > SLOWED * self.verdict.processor_s:
            self.verdict.starved = True
        self._stop()
        return self.verdict

    def _start(self) -> None:
        for name, port in self._places.items():
            (self._home / "members" / name / "port").write_text(str(port))
        self._valkey.start()
        if self._postgres:
            self._postgres.start()
        home = self._home / "home"
        template.in_fork(lambda: template.move_members(self._database, home, self._places), self._home / "move.log")
        use(self._database, self._valkey.url, home)
        (home / "run").mkdir(exist_ok=True)
        (self._home / "logs").mkdir()
        self._nursery = Nursery(self._board)
        for name in members.NAMES:
            self._members.start(name)
        self._commands = self._command_lines(home)
        for name in _PROCESSES:
            self._begin(name)
        self._await_web()

    def _command_lines(self, home: Path) -> dict[str, tuple[str, ...]]:
        """As the supervisor starts them, without the interpreter, and two of a kind."""
        plan = product.Plan(home, self._web, self._kube, Broker("", self._valkey.url), 0)
        loops = product._loops(plan)
        return {
            "web": product.web_command(self._web)[1:],
            "kube": tuple(word for word in product._kube(self._kube)[1:] if word != "--kubeconfig"),
            "worker-1": (*loops["worker"][1:], "-n", "first@%h"),
            "worker-2": (*loops["worker"][1:], "-n", "second@%h"),
            "watcher-1": loops["watcher"][1:],
            "watcher-2": loops["watcher"][1:],
            "beat": loops["beat"][1:],
        }

    def _begin(self, name: str) -> None:
        log = self._home / "logs" / f"{name}.log"
        slot = _PROCESSES.index(name)
        self._pids[name] = self._nursery.start(name, self._commands[name], slot=slot, log=log)

    def _await_web(self) -> None:
        deadline = time.monotonic() + READY_S * self._slow
        while True:
            self._supervise()
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self._web}/livez", timeout=5).close()
                return
            assert time.monotonic() < deadline, "the web process does not answer"
            time.sleep(0.05)

    def _users(self) -> Users:
        token = (self._home / template.TOKEN).read_text()
        schedule = self._schedule
        return Users(
            self._web, self._kube, token, schedule.purge, schedule.queued, schedule.toleration_s, slow=self._slow
        )

    def _supervise(self) -> None:
        for name, pid in self._pids.items():
            if self._absent_until.get(name, 0.0) > time.monotonic() or is_alive(pid):
                continue
            if name in self._absent_until:
                del self._absent_until[name]
                self._begin(name)
            else:
                self._absent_until[name] = time.monotonic() + RESTART_S

    def _strike_all(self, users: Users, court: Judge) -> None:
        """One strike after the other, each once its step is reached and the former is healed."""
        began, backed_up = time.monotonic(), False
        for strike in self._schedule.strikes:
            self._board.arm(strike.step, strike.call)
            deadline = time.monotonic() + REACHED_S
            while not self._board.hit and time.monotonic() < deadline:
                self._turn(users, court)
                if not backed_up and time.monotonic() - began > BACKUP_S:
                    self._back_up()
                    backed_up = True
            if not backed_up:
                self._back_up()
                backed_up = True
            self.verdict.reached.append(bool(self._board.hit))
            self._strike(strike, court)
            self._board.disarm()
            while self._healing:
                self._turn(users, court)
                self._heal(court)

    def _turn(self, users: Users, court: Judge) -> None:
        deadline = time.monotonic() + LOOK_S
        self._supervise()
        if users.notice_due.is_set() and not users.noticed.is_set() and self._members.give_notice(NOTICED):
            users.noticed.set()
        if users.acted.is_set():
            self._members.end_programs(LASTING)
        court.opens_at = users.opens_at
        self._look(court)
        while time.monotonic() < deadline and not self._board.hit:
            time.sleep(0.005)

    def _look(self, court: Judge) -> None:
        began = time.monotonic()
        contents = self._members.contents()
        if time.monotonic() - began > STARVED_S * self._slow:
            # The members are threads of this process: the product rightly lost those that could not answer in time.
            court.struck = replace(court.struck, members=frozenset(members.NAMES), dispatch=True)
            court.note("the machine is too busy: every member counts as struck")
            self.verdict.starved = self.verdict.excused = True
        court.look(contents, self._rows())

    @property
    def _address(self) -> str | Path:
        return self._postgres.url if self._postgres else self._home / "database.sqlite3"

    def _rows(self) -> rows.Rows | None:
        return rows.read(self._address)

    def _back_up(self) -> None:
        if any(strike.fault is Fault.OLD for strike in self._schedule.strikes):
            for name in members.NAMES:
                self._members.back_up(name)

    def _strike(self, strike: Strike, court: Judge) -> None:
        victim = self._victim(strike)
        self.verdict.struck.append(f"{victim} {strike.fault}")
        court.note(f"{victim} {strike.fault}")
        if strike.target not in _WITHOUT_WORKERS and strike.fault is not Fault.SLOW:
            court.struck = replace(court.struck, dispatch=True)
        until = time.monotonic() + strike.lasts_s * self._slow
        match strike.target, strike.fault:
            case Target.MEMBER, fault:
                restored = {victim} if fault is Fault.OLD else set()
                struck = court.struck
                court.struck = replace(struck, members=struck.members | {victim}, restored=struck.restored | restored)
                self._members.strike(victim, fault)
            case Target.DATABASE, fault:
                assert self._postgres
                court.struck = replace(court.struck, database_s=(time.time(), time.time() + 3600))
                _strike_server(self._postgres, fault)
            case Target.BROKER, fault:
                _strike_server(self._valkey, fault)
            case Target.CLOCK, fault:
                court.struck = replace(court.struck, clock=True)
                self._step_clock(victim, _CLOCK_S if fault is Fault.AHEAD else -_CLOCK_S)
            case _, Fault.PAUSE:
                os.kill(self._pids[victim], signal.SIGSTOP)
            case _:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pids[victim], signal.SIGKILL)
                self._absent_until[victim] = until + RESTART_S
        self._healing.append((until, strike, victim))

    def _step_clock(self, victim: str, ahead_s: float) -> None:
        if victim == "database":
            assert self._postgres
            self._postgres.step_clock(ahead_s)
        else:
            self._board.set_offset(_PROCESSES.index(victim), ahead_s)

    def _victim(self, strike: Strike) -> str:
        names = {pid: name for name, pid in self._pids.items()}
        here = names.get(self._board.hit, "")
        match strike.target:
            case Target.MEMBER:
                contents = self._members.contents()
                busy = [name for name in members.NAMES if any(map(objects.is_live, contents[name].copies))]
                careful = [name for name in busy if CAREFUL & set(map(objects.name, contents[name].copies))]
                busy = careful if careful and self._dice.random() < 0.5 else busy
                return self._dice.choice(busy or list(members.NAMES))
            case Target.DATABASE | Target.BROKER:
                return strike.target.value
            case Target.CLOCK if self._postgres and self._dice.random() < 0.5:
                return "database"
            case Target.CLOCK:
                return here or self._dice.choice(_PROCESSES)
            case Target.SCHEDULER:
                return names.get(self._board.scheduler) or self._dice.choice(("worker-1", "worker-2"))
        alike = [name for name in _PROCESSES if name.partition("-")[0] == strike.target.value]
        return here if here in alike else self._dice.choice(alike)

    def _heal(self, court: Judge) -> None:
        now = time.monotonic()
        due, self._healing = [h for h in self._healing if h[0] <= now], [h for h in self._healing if h[0] > now]
        for _, strike, victim in due:
            court.note(f"{victim} {strike.fault} is over")
            match strike.target, strike.fault:
                case Target.MEMBER, fault:
                    if fault is Fault.LATE:
                        court.struck = replace(court.struck, restored=court.struck.restored | {victim})
                    self._members.heal(victim, fault)
                case Target.DATABASE, fault:
                    assert self._postgres
                    _heal_server(self._postgres, fault)
                    court.struck = replace(court.struck, database_s=(court.struck.database_s[0], time.time()))
                case Target.BROKER, fault:
                    _heal_server(self._valkey, fault)
                case Target.CLOCK, _:
                    self._step_clock(victim, 0.0)
                case _, Fault.PAUSE:
                    os.kill(self._pids[victim], signal.SIGCONT)

    def _settle(self, users: Users, court: Judge) -> None:
        """Until nothing is wrong any more, or nothing changes any more."""
        settles_s, longest_s = SETTLES_S * self._slow, LONGEST_S * self._slow
        began = changed = time.monotonic()
        faults, before = ["never looked"], ""
        while faults and (now := time.monotonic()) - changed < settles_s and now - began < longest_s:
            self._turn(users, court)
            current = self._rows()
            faults = ["the database does not answer"]
            if current is not None:
                faults = court.faults_at_end(self._members.contents(), current)
                state = str((current.jobs, current.works, current.attempts, current.pods))
                changed, before = (changed, before) if state == before else (now, state)
            if not users.done.is_set() and not users.submitted.is_set():
                faults.append("the users are not done")
        self.verdict.settled_s = time.monotonic() - began
        self.verdict.faults += [f"at the end: {fault}" for fault in faults]

    def _evidence(self, users: Users, court: Judge) -> list[str]:
        found = [f"seen {count} times: {fault}" for fault, count in court.faults.items()]
        found += judge.wrong_answers(users.answers, court.struck)
        found += judge.wrong_writes(self._members.writes, court.struck, court.history)
        found += judge.own_errors(sorted((self._home / "logs").glob("*.log")))
        if users.error:
            found.append(f"users: {users.error}")
        if self._postgres and (deadlocks := self._postgres.deadlocks()):
            found.append(f"{deadlocks} deadlocks in the server's log")
        if found or self.verdict.faults:
            self._show_stacks()
        current, timeline = self._rows(), rows.timeline(self._address)
        court.effects.read_timeline(timeline)
        self.verdict.effects = sorted(court.effects.seen)
        kept = {
            "answers": [asdict(answer) for answer in users.answers],
            "timeline": timeline,
            "rows": asdict(current) if current else None,
            "notes": court.notes,
            "writes": [asdict(write) for write in self._members.writes],
        }
        for name, content in kept.items():
            (self._home / f"{name}.json").write_text(json.dumps(content, default=str, indent=1))
        return found

    def _show_stacks(self) -> None:
        """Where each process stands, in its log: one that hangs is seen there."""
        for pid in self._pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
        time.sleep(1.0)

    def _stop(self) -> None:
        self._nursery.stop()
        self._valkey.kill()
        if self._postgres:
            self._postgres.kill()


def _strike_server(server: Postgres | Valkey, fault: Fault) -> None:
    if fault is Fault.PAUSE:
        server.signal(signal.SIGSTOP)
    elif fault is Fault.DROP:
        server.drop()
    else:
        server.kill()


def _heal_server(server: Postgres | Valkey, fault: Fault) -> None:
    if fault is Fault.PAUSE:
        server.signal(signal.SIGCONT)
    elif fault is Fault.KILL:
        server.start()


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def free_ports(count: int) -> list[int]:
    """Below those that the system gives to outgoing connections, so that none is taken before it is listened on."""
    dice, taken = random.SystemRandom(), list[int]()
    while len(taken) < count:
        port = dice.randrange(10_000, 32_000)
        if port not in taken and ports.is_free(port):
            taken.append(port)
    return taken
