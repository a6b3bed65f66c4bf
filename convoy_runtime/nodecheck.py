"""Checks the nodes of a gang against each other before its training starts: ``python -m convoy_runtime.nodecheck``.

Convoy adds it to each pod as an init container where a job asks for it. The pod whose address is the lowest leads: it
orders in each round which nodes check each other (`pairing`), and sends in the end what is known of each. Every pod writes that
of its own node, as a line of its log and as its termination message, and fails if that is faulty. Where the check itself cannot
be made, because not all pods come, the training goes on: a check must not keep from starting what would run.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from convoy_runtime import lines, torch_check
from convoy_runtime.check_leader import MARGIN_S, Leader
from convoy_runtime.check_messages import Channel, Ended
from convoy_runtime.pair_check import CheckFailed, Member, check
from convoy_runtime.pairing import FAULTY, MOST_ROUNDS, OK, SLOW, UNKNOWN

PORT = 29401
FAILED = 86
"""Exit code of a pod whose node is faulty, or slow where that counts."""
_POLL_S = 0.5
Address = tuple[str, int]


def main(argv: Sequence[str]) -> int:
    asked = _arguments(argv)
    verdict = _remembered(asked.verdict) or _checked(asked)
    line = lines.text("nodecheck", time.time(), **verdict)
    print(line, flush=True)
    for file in (asked.termination_log, asked.verdict):
        _write(file, line)
    failing = (FAULTY, SLOW) if asked.slow_fails else (FAULTY,)
    return FAILED if verdict["verdict"] in failing else 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="convoy_runtime.nodecheck", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--service", help="name whose addresses are those of all pods; that of this one is in POD_IP")
    where.add_argument("--peers", help="HOST:PORT of each node, in one order everywhere; needs --node")
    parser.add_argument("--node", type=int, default=0, help="which of the peers this is")
    parser.add_argument("--listen", type=int, help="port to listen on, if not the one that the others are given")
    parser.add_argument("--nodes", type=int, help="how many addresses the service has to have")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--key", default="", help="what only the pods of this gang know")
    parser.add_argument("--join-s", type=float, default=300.0, help="seconds within which all pods have to come")
    parser.add_argument(
        "--until", type=float, help="Unix time after which no pod waits for the others, however late it began"
    )
    parser.add_argument(
        "--check-s", type=float, default=60.0, help="seconds after which a check of one round has failed"
    )
    parser.add_argument("--slow-fails", action="store_true", help="a slow node fails, too")
    parser.add_argument("--termination-log", type=Path, default=Path("/dev/termination-log"))
    parser.add_argument("--verdict", type=Path, help="file that outlives a restart of the container")
    return parser.parse_args(argv)


def _checked(asked: argparse.Namespace) -> dict[str, Any]:
    """What is known of this node in the end."""
    began = time.monotonic()
    try:
        asked.join_s = _join_s(asked, time.time())
        deadline = began + asked.join_s
        verdict = _take_part(asked, *_peers(asked, deadline), deadline)
    except (CheckFailed, Ended, OSError, KeyError, TypeError, ValueError) as e:
        verdict = {"verdict": UNKNOWN, "message": f"{e}"[:300] or type(e).__name__}
    return {"took_s": round(time.monotonic() - began, 1), **verdict}


def _join_s(asked: argparse.Namespace, now: float) -> float:
    """How long to wait for the others; raises `CheckFailed` where they are past their check."""
    if asked.until is None:
        return float(asked.join_s)
    if asked.until < now:
        raise CheckFailed("this pod has started too late to be checked with the others")
    return float(min(asked.join_s, asked.until - now))


def _peers(asked: argparse.Namespace, deadline: float) -> tuple[list[Address], int]:
    if asked.peers:
        hosts = [peer.rsplit(":", 1) for peer in asked.peers.split(",")]
        return [(host, int(port)) for host, port in hosts], asked.node
    own = os.environ.get("POD_IP", "")
    found = addresses_of(asked.service, asked.nodes, deadline)
    if own not in found:
        raise CheckFailed(f"the address of this pod, POD_IP={own!r}, is not among those of {asked.service}")
    return [(host, asked.port) for host in found], found.index(own)


def _resolve(name: str) -> Sequence[str]:
    try:
        return [str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    except OSError:
        return []


def addresses_of(
    name: str,
    nodes: int,
    deadline: float,
    resolve: Callable[[str], Sequence[str]] = _resolve,
    pause: Callable[[float], object] = time.sleep,
) -> list[str]:
    """The addresses of all pods, in one order for all of them; raises `CheckFailed` when they do not come in time."""
    while True:
        found = sorted(set(resolve(name)))
        if len(found) == nodes:
            return found
        if time.monotonic() >= deadline:
            raise CheckFailed(f"{len(found)} of {nodes} pods have come")
        pause(_POLL_S)


def _take_part(asked: argparse.Namespace, addresses: Sequence[Address], me: int, deadline: float) -> dict[str, Any]:
    host, port = addresses[me]
    with socket.create_server(("", asked.listen or port), backlog=64) as listener:
        door = socket.create_server(("", (asked.listen or port) + 2), backlog=1024) if me == 0 else None
        leader = Leader(door, len(addresses), asked.key, asked.join_s, asked.check_s) if door else None
        if leader:
            Thread(target=leader.run, name="leader", daemon=True).start()
        leads = ("127.0.0.1", (asked.listen or port) + 2) if me == 0 else (addresses[0][0], addresses[0][1] + 2)
        try:
            with Channel.to(leads, deadline) as channel:
                has_torch = torch_check.is_there()
                own = Member(me, host, port, torch_check.devices() if has_torch else 1)
                return _obey(channel, own, has_torch, listener, asked)
        finally:
            if leader:
                leader.join()


def _obey(
    channel: Channel, own: Member, has_torch: bool, listener: socket.socket, asked: argparse.Namespace
) -> dict[str, Any]:
    """Checks as the leader orders, until it sends what is known of this node."""
    place = {"node": own.node, "host": own.host, "port": own.port, "devices": own.devices, "torch": has_torch}
    channel.send({"key": asked.key, **place})
    # Longer than all rounds: a leader that is gone closes the connection.
    deadline = time.monotonic() + asked.join_s + MOST_ROUNDS * (asked.check_s + MARGIN_S)
    while True:
        message = channel.receive(deadline)
        if "verdict" in message:
            return {name: message[name] for name in ("verdict", "seconds", "rounds", "message") if name in message}
        members = [Member(*each) for each in message["members"]]
        outcome = _outcome(members, own.node, listener, message["key"], asked.check_s, by_torch=message["torch"])
        channel.send({"round": message["round"], **outcome})


def _outcome(
    members: Sequence[Member], me: int, listener: socket.socket, key: str, timeout_s: float, *, by_torch: bool
) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    try:
        seconds = check(members, me, listener, key, timeout_s)
        if by_torch:
            seconds += torch_check.run(members, me, deadline - time.monotonic())
    except CheckFailed as e:
        return {"ok": False, "message": str(e)[:300]}
    return {"ok": True, "seconds": round(seconds, 3)}


def _remembered(file: Path | None) -> dict[str, Any] | None:
    """The verdict from before the container was started again: the others are past their check by then."""
    try:
        known = json.loads(file.read_text()) if file else None
    except (OSError, ValueError):
        return None
    if not isinstance(known, dict) or known.get("verdict") not in (OK, FAULTY, SLOW, UNKNOWN):
        return None
    return {name: known[name] for name in ("took_s", "verdict", "seconds", "rounds", "message") if name in known}


def _write(file: Path | None, line: str) -> None:
    try:
        if file and file.parent.is_dir():
            file.write_text(line)
    except OSError:
        return  # the line is in the log


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
