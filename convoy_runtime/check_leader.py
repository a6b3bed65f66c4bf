"""The leader of a node check: gathers the nodes, has them check each other round by round, and sends each what is known of it.

A node whose connection breaks has failed what it was to do. If not all nodes come, nothing is known of any: a pod whose image
is still being pulled looks like one whose node is not reached.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from threading import Event
from typing import Any

from convoy_runtime.check_messages import Channel, Ended
from convoy_runtime.pairing import FAULTY, OK, UNKNOWN, Result, next_groups, verdicts

MARGIN_S = 15.0
"""How much longer than a check its answer may take."""


class Leader:
    def __init__(self, door: socket.socket, nodes: int, key: str, join_s: float, check_s: float) -> None:
        self._door, self._nodes, self._key = door, nodes, key
        self._join_s, self._check_s = join_s, check_s
        self._channels: dict[int, Channel] = {}
        self._places: dict[int, tuple[str, int, int]] = {}
        self._have_torch: dict[int, bool] = {}
        self._results: list[Result] = []
        self._rounds = 0
        self._over = Event()

    def run(self) -> None:
        try:
            self._gather(time.monotonic() + self._join_s)
            if len(self._channels) == self._nodes:
                while groups := next_groups(self._nodes, self._results, self._rounds):
                    self._round(groups)
                self._announce(verdicts(self._nodes, self._results))
            else:
                self._announce_incomplete()
        finally:
            for channel in self._channels.values():
                channel.socket.close()
            self._door.close()
            self._over.set()

    def join(self) -> None:
        self._over.wait(60)

    def _gather(self, deadline: float) -> None:
        """Accepts until all nodes are there; what does not know the key is closed."""
        with selectors.DefaultSelector() as selector:
            self._door.setblocking(False)
            selector.register(self._door, selectors.EVENT_READ)
            while len(self._channels) < self._nodes and (left := deadline - time.monotonic()) > 0:
                for ready, _ in selector.select(left):
                    if ready.data is None:
                        channel = Channel(self._door.accept()[0])
                        selector.register(channel.socket, selectors.EVENT_READ, channel)
                    elif self._introduces_itself(ready.data):
                        selector.unregister(ready.fileobj)

    def _introduces_itself(self, channel: Channel) -> bool:
        """Whether nothing more is to be read of it for now."""
        try:
            channel.read()
            message = channel.message()
            if message is None:
                return False
            node = int(message["node"])
            if message["key"] != self._key or not 0 <= node < self._nodes:
                raise Ended("it is not of this gang")
            place = str(message["host"]), int(message["port"]), max(int(message["devices"]), 1)
        except (Ended, OSError, KeyError, TypeError, ValueError):
            channel.socket.close()
            return True
        self._channels[node], self._places[node], self._have_torch[node] = channel, place, message.get("torch") is True
        return True

    def _round(self, groups: Sequence[tuple[int, ...]]) -> None:
        key = f"{self._key}/{self._rounds}"
        # By all or by none: a node that waits for one without torch would fail with it.
        torch = all(self._have_torch.values())
        awaited = set()
        for group in groups:
            members = [[node, *self._places[node]] for node in group]
            for node in group:
                try:
                    self._channels[node].send({"round": self._rounds, "members": members, "key": key, "torch": torch})
                    awaited.add(node)
                except Ended:
                    continue
        answers = self._answers(awaited, time.monotonic() + self._check_s + MARGIN_S)
        for group in groups:
            ok = all(answers.get(node, {}).get("ok") is True for node in group)
            seconds = {node: _number(answers[node].get("seconds")) for node in group} if ok else {}
            self._results.append(Result(group, ok, seconds))
        self._rounds += 1

    def _answers(self, awaited: Collection[int], deadline: float) -> Mapping[int, Mapping[str, Any]]:
        answers: dict[int, Mapping[str, Any]] = {}
        with selectors.DefaultSelector() as selector:
            for node in awaited:
                selector.register(self._channels[node].socket, selectors.EVENT_READ, node)
            while selector.get_map() and (left := deadline - time.monotonic()) > 0:
                for ready, _ in selector.select(left):
                    answer = self._answer(ready.data)
                    if answer is not None:
                        answers[ready.data] = answer
                        selector.unregister(ready.fileobj)
        return answers

    def _answer(self, node: int) -> Mapping[str, Any] | None:
        """What the node answers in this round; nothing where it is gone, and None where more is to come."""
        channel = self._channels[node]
        try:
            channel.read()
            message = channel.message()
            while message is not None and message.get("round") != self._rounds:
                message = channel.message()  # of a round that was over
            return message
        except (Ended, OSError):
            return {}

    def _announce(self, known: Mapping[int, str]) -> None:
        for node, channel in self._channels.items():
            times = [result.seconds[node] for result in self._results if node in result.seconds]
            message: dict[str, Any] = {"verdict": known[node], "rounds": self._rounds}
            if times:
                message["seconds"] = min(times)
            if known[node] != OK:
                message["message"] = _WHY[known[node]]
            self._send_to(channel, message)

    def _announce_incomplete(self) -> None:
        reason = f"{len(self._channels)} of {self._nodes} nodes have come"
        for channel in self._channels.values():
            self._send_to(channel, {"verdict": UNKNOWN, "message": reason})

    def _send_to(self, channel: Channel, message: dict[str, Any]) -> None:
        try:
            channel.send(message)
        except Ended:
            return  # it fails by itself


_WHY = {
    FAULTY: "it failed with nodes that work with others",
    "slow": "it takes more than twice as long as most, with nodes that do not",
    UNKNOWN: "it failed, and no node is known to work that it could be checked with",
}


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
