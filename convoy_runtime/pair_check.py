"""One check of one group of nodes: each computes, then all reduce a block of bytes around a ring of TCP connections.

Every node sends to the next one and receives from the one before, so that both directions of each are used, and knows the
result beforehand: a byte that changed on its way, or in memory, is a failure like a connection that breaks.
"""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from threading import Thread

BLOCK = 8 << 20
_ROUNDS = 4
"""How many times the block is reduced."""
_HASHED = 8
"""Blocks that are hashed, to see how fast the processor is."""
_HEAD = 512


class CheckFailed(Exception):
    """Why, in words; which node is at fault it does not say."""


@dataclass(frozen=True)
class Member:
    node: int
    host: str
    port: int
    devices: int = 1


def check(
    members: Sequence[Member], me: int, listener: socket.socket, key: str, timeout_s: float, block: int = BLOCK
) -> float:
    """The seconds that it took this node. Raises `CheckFailed`. ``key`` is the same for this check alone."""
    deadline = time.monotonic() + timeout_s
    order = [member.node for member in members]
    place = order.index(me)
    blocks = {node: Random(f"{key}/{node}").randbytes(block) for node in order}  # noqa: S311 - no secret
    expected = _reduced(list(blocks.values()))
    computed = _compute(blocks[me])
    try:
        with ExitStack() as closing:
            after = closing.enter_context(_connect(members[(place + 1) % len(members)], me, key, deadline))
            before = closing.enter_context(_accept(listener, order[place - 1], key, deadline))
            began = time.monotonic()
            for _ in range(_ROUNDS):
                if _all_reduce(blocks[me], len(order), after, before, deadline) != expected:
                    raise CheckFailed("what was received is not what was sent")
            return computed + time.monotonic() - began
    except (OSError, ValueError) as e:
        raise CheckFailed(f"{type(e).__name__}: {e}") from e


def _compute(block: bytes) -> float:
    began = time.monotonic()
    digests = {hashlib.sha256(block).digest() for _ in range(_HASHED)}
    if len(digests) != 1:
        raise CheckFailed("the processor gives different results for the same input")
    return time.monotonic() - began


def _reduced(blocks: Sequence[bytes]) -> bytes:
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "little")
    return total.to_bytes(len(blocks[0]), "little")


def _all_reduce(block: bytes, nodes: int, after: socket.socket, before: socket.socket, deadline: float) -> bytes:
    """What all have sent, reduced: each block goes around the ring once."""
    reduced, passed_on = [block], block
    for _ in range(nodes - 1):
        errors: list[OSError] = []
        sending = Thread(target=_send, args=(after, passed_on, deadline, errors), daemon=True)
        sending.start()
        passed_on = receive(before, len(block), deadline)
        sending.join(max(deadline - time.monotonic(), 0.0))
        if errors or sending.is_alive():
            raise errors[0] if errors else TimeoutError("sending takes too long")
        reduced.append(passed_on)
    return _reduced(reduced)


def _send(peer: socket.socket, data: bytes, deadline: float, errors: list[OSError]) -> None:
    try:
        peer.settimeout(_left(deadline))
        peer.sendall(data)
    except OSError as e:
        errors.append(e)


def receive(peer: socket.socket, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        peer.settimeout(_left(deadline))
        piece = peer.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("the other node has closed the connection")
        data += piece
    return bytes(data)


def _connect(member: Member, me: int, key: str, deadline: float) -> socket.socket:
    """A connection to the next node, which says for which check it is."""
    peer = socket.create_connection((member.host, member.port), _left(deadline))
    peer.sendall(json.dumps({"key": key, "node": me}).encode().ljust(_HEAD))
    return peer


def _accept(listener: socket.socket, node: int, key: str, deadline: float) -> socket.socket:
    """The connection from the node before; those of earlier checks, and of strangers, are closed."""
    while True:
        listener.settimeout(_left(deadline))
        peer, _ = listener.accept()
        if _reads(peer, lambda head: head == {"key": key, "node": node}, deadline):
            return peer
        peer.close()


def _reads(peer: socket.socket, accepts: Callable[[object], bool], deadline: float) -> bool:
    try:
        return accepts(json.loads(receive(peer, _HEAD, min(deadline, time.monotonic() + 5))))
    except (OSError, ValueError):
        return False


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the check takes too long")
    return left
