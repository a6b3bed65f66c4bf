"""Runs several simulated members in one process: ``python -m simulator.main --home DIR --config FILE``.

Each member has its own folder in the home. Its kubeconfig is written there and, for joining, as ``DIR/NAME.kubeconfig``. Prints
one line when all members are ready. On SIGTERM or SIGINT it ends, and stops the processes of its pods.
"""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import FrameType

from simulator import addons, fault_parser, spot_market
from simulator.addons import BadManifest
from simulator.fault_parser import BadFault, Fault
from simulator.faults_control import ControlServer
from simulator.machinery.clock import WallClock
from simulator.machinery.objects import Object
from simulator.member import SimulatedMember
from simulator.scenario import Player
from simulator.shape import BadShape, FleetPlan, MemberPlan, parse


class Fleet:
    """The members of one process, by name."""

    def __init__(self, home: Path, plan: FleetPlan, folder: Path) -> None:
        """``folder``: of the file that describes the members. Raises `BadManifest`."""
        self.members = {
            member.name: SimulatedMember(
                member.name,
                home / member.name,
                replace(member.shape, installed=tuple(_installed(member, folder))),
                time_scale=plan.time_scale,
                start_delay_s=plan.start_delay_s,
                version=member.version,
                serves=member.serves,
                seed=number,
            )
            for number, member in enumerate(plan.members)
        }
        self._home = home
        markets = [(member.name, pool) for member in plan.members for pool in member.shape.pools if pool.spot]
        clock = WallClock(plan.time_scale)
        self._markets = [Player(spot_market.steps(name, pool), self.disturb, clock) for name, pool in markets]

    def start(self) -> None:
        for name, member in self.members.items():
            member.start()
            path = self._home / f"{name}.kubeconfig"
            path.touch(mode=0o600)
            path.write_text((member.home / "kubeconfig.yaml").read_text())
        for market in self._markets:
            market.start()

    def stop(self) -> None:
        for market in self._markets:
            market.stop()
        with ThreadPoolExecutor(len(self.members)) as pool:
            list(pool.map(SimulatedMember.stop, self.members.values()))

    def disturb(self, name: str, fault: Fault) -> str:
        if name not in self.members:
            raise BadFault(f"no member {name!r}: there are {', '.join(self.members)}")
        return self.members[name].disturb(fault)


def _installed(member: MemberPlan, folder: Path) -> Iterator[Object]:
    return (each for file in member.manifests for each in addons.read(folder / file))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator.main", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the folder that keeps the members' state")
    parser.add_argument("--config", type=Path, required=True, help="the file that describes the members")
    parser.add_argument("--scenario", type=Path, help="a file of faults to inject, each at its time")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        plan = parse(options.config.read_text())
        fleet = Fleet(options.home, plan, options.config.parent)
        steps = fault_parser.scenario(options.scenario.read_text()) if options.scenario else []
    except (OSError, BadShape, BadFault, BadManifest) as e:
        print(e, file=sys.stderr)
        return 2
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    options.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    control = ControlServer(options.home, lambda member, words: fleet.disturb(member, fault_parser.parse(words)))
    player = Player(steps, fleet.disturb, WallClock(plan.time_scale))
    try:
        fleet.start()
        control.start()
        player.start()
        print(f"{len(fleet.members)} simulated members are ready: {', '.join(fleet.members)}", flush=True)
        stop.wait()
    finally:
        player.stop()
        control.stop()
        fleet.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
