"""``up``: from a checkout to a running fleet. Set-up, start, demo, last words; then it stays until Ctrl-C."""

import argparse
import json
import os
import secrets
import signal
from dataclasses import dataclass
from pathlib import Path

from deploy.bootstrap import demo, locks, management, ports, problems, ready, running, summary
from deploy.bootstrap.console import Console
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.home import ROOT, Home, write_private
from deploy.bootstrap.observe import Reader
from deploy.bootstrap.patience import Patience, WorkingClock
from deploy.bootstrap.progress import Steps
from deploy.bootstrap.rest import Api

SIMULATED = 3
NO_MEMBERS = "none"
SPEAK = "speak to the database"


@dataclass(frozen=True, slots=True)
class Options:
    """What the person asked for."""

    detach: bool
    empty: bool
    ci: bool
    members: Path | None


def command(argv: list[str], home: Home, steps: Steps) -> int:
    options = parse(argv)
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, signal.default_int_handler)
    try:
        home.make()
    except OSError as error:
        raise problems.of_error(error, "make the folder for Convoy's state") from error
    with locks.held(home.up_lock):
        fresh = not running.is_running(home)
        try:
            works = _start_and_show(options, home, steps, fresh)
        except BaseException:
            if fresh:
                running.end(home)
            raise
    if options.ci:
        running.end(home)
        return 0 if works else 1
    if fresh and not options.detach:
        stay(home, steps)
    return 0


def parse(argv: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="manage.py up", description="Sets everything up and runs it.")
    parser.add_argument("--detach", action="store_true", help="return when it is ready")
    parser.add_argument("--ci", action="store_true", help="stop again once it is ready and the demo job runs")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--empty", action="store_true", help="no clusters and no demo job")
    what.add_argument("--members", type=Path, metavar="DIR", help="join the clusters of the kubeconfigs in DIR")
    options = parser.parse_args(argv)
    return Options(options.detach, options.empty, options.ci, options.members and options.members.absolute())


def _start_and_show(options: Options, home: Home, steps: Steps, fresh: bool) -> bool:
    """Whether what was to be shown was seen."""
    members = _members(options, home)
    if fresh:
        _start(options, home, steps, members)
    else:
        steps.say("Convoy is already up.")
        if note := running.other_revision(home, running.revision()):
            steps.say(note)
        with steps.step("Waiting until it is ready"):
            ready.wait_all(home, steps)
    port = int(running.state(home)["port"])
    api = Api(
        port, _token(home, port, steps, may_fork=fresh), Patience(home, lambda: ready.all_rows(home), steps.say).check
    )
    with management.command(home, "signin_link", doing=SPEAK, may_fork=fresh) as output:
        job = _demonstrate(api, home, steps, members) if members != NO_MEMBERS else None
        link = output().strip()
    if job:
        summary.print_job(steps, job, demo.pods(api, job))
    summary.print_endpoints(steps, home, port, link, has_demo=job is not None)
    summary.print_stop(steps, stays=fresh and not options.detach)
    return job is None or job["state"] in ("Running", "Succeeded")


def _members(options: Options, home: Home) -> str:
    """The fleet, kept for next time: a folder of kubeconfigs, nothing, or (the empty word) the simulated clusters."""
    if options.members:
        demo.kubeconfigs(options.members)
    if options.members or options.empty:
        return home.keep(CONVOY_MEMBERS=str(options.members or NO_MEMBERS))["CONVOY_MEMBERS"]
    return home.settings().get("CONVOY_MEMBERS", "")


def _start(options: Options, home: Home, steps: Steps, members: str) -> None:
    running.end(home)
    Console(ROOT, Environment(ROOT, steps), steps).ensure()
    kept = home.settings()
    wanted = int(os.environ.get("CONVOY_PORT") or kept.get("CONVOY_PORT") or 8000)
    port = ports.first_free(wanted)
    if port != wanted:
        steps.say(f"  Port {wanted} is in use: taking {port}.")
    broker_port = ports.any_free(int(kept.get("CONVOY_BROKER_PORT", 0)))
    password = kept.get("CONVOY_BROKER_PASSWORD") or secrets.token_hex(24)
    write_private(home.revision_file, running.revision())
    home.keep(CONVOY_PORT=str(port), CONVOY_BROKER_PORT=str(broker_port), CONVOY_BROKER_PASSWORD=password)
    with steps.step("Starting web, worker, beat, watcher" + ("" if members else ", three simulated clusters")):
        supervisor = running.start(
            home,
            port=port,
            broker_port=broker_port,
            simulated=0 if members else SIMULATED,
            password=password,
            tied=not options.detach,
            lively=not options.ci and os.environ.get("CONVOY_DEMO_LIFE") != "off",
        )
        try:
            ready.wait_all(home, steps, supervisor)
        except BaseException:
            running.end(home, supervisor)
            raise


def _demonstrate(api: Api, home: Home, steps: Steps, members: str) -> dict[str, object] | None:
    """The demo job on simulated clusters. Real ones are joined and run nothing: no demo's job and no demo's quota tree."""
    if members:
        demo.join(api, demo.kubeconfigs(Path(members)), steps)
        return None
    demo.join(api, demo.simulated(home), steps)
    demo.submit(api, steps)
    clock = WorkingClock(lambda: [row.pid for row in ready.all_rows(home) if row.pid])
    return demo.follow(api, steps, clock.look)


def _token(home: Home, port: int, steps: Steps, *, may_fork: bool) -> str:
    """A token of user admin that works: the kept one, else a new one. The command line reads it from the same file."""
    url = f"http://127.0.0.1:{port}"
    patience = Patience(home, lambda: ready.all_rows(home), steps.say)
    if home.cli_file.exists():
        kept = json.loads(home.cli_file.read_text())
        if Api(port, kept["token"], patience.check).get("me/").ok:
            write_private(home.cli_file, json.dumps(kept | {"url": url}))
            return str(kept["token"])
    with management.command(home, "ensure_admin", doing=SPEAK, may_fork=may_fork) as output:
        output()
    mint = ("mint_token", "--user", "admin", "--name", "bootstrap")
    with management.command(home, *mint, doing=SPEAK, may_fork=may_fork) as output:
        token = output().split()[-1]
    write_private(home.cli_file, json.dumps({"url": url, "token": token}))
    return token


def stay(home: Home, steps: Steps) -> None:
    """Shows what the processes say until Ctrl-C, then stops them."""
    reader = Reader(home.logs, [], steps)
    try:
        reader.show(0)
        reader.follow(lambda: running.is_running(home))
        steps.say("Convoy was stopped.")
    except KeyboardInterrupt:
        steps.say()
        with steps.step("Stopping Convoy"):
            running.end(home)
