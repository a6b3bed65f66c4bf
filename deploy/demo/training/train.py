"""Trains a small neural network, data-parallel, over as many processes as the job has: nothing but Python and sockets.

Each rank holds its own share of the points; after every step the gradients are averaged over all ranks (an all-reduce
through rank 0), so all of them hold the same weights. The task: classify points as inside or outside of a ring.
It reads what a PyTorchJob's pods are given: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Exit code 0 means it learned.
"""

import array
import math
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import TypeAlias

HIDDEN = 12
POINTS = 90
STEPS = int(os.environ.get("STEPS", "120"))
PAUSE_S = float(os.environ.get("PAUSE_S", "0.05"))
RATE = 0.05
GOOD_LOSS = 0.2
JOIN_S = 60.0

Point = tuple[float, float, float]
Vector: TypeAlias = "array.array[float]"


class Ring:
    """The ranks of one job, joined: rank 0 listens, the others call it."""

    def __init__(self, rank: int, world: int, address: str, port: int) -> None:
        self.rank = rank
        self.world = world
        self.peers = self._welcome(address, port) if rank == 0 else [self._call(address, port)]

    def mean(self, values: Vector) -> Vector:
        """The average over all ranks, the same on each of them."""
        if self.rank:
            send(self.peers[0], values)
            return receive(self.peers[0])
        total = array.array("d", values)
        for peer in self.peers:
            for index, value in enumerate(receive(peer)):
                total[index] += value
        average = array.array("d", (value / self.world for value in total))
        for peer in self.peers:
            send(peer, average)
        return average

    def _welcome(self, address: str, port: int) -> list[socket.socket]:
        with socket.create_server((address, port)) as server:
            server.settimeout(JOIN_S)
            return [server.accept()[0] for _ in range(self.world - 1)]

    def _call(self, address: str, port: int) -> socket.socket:
        until = time.monotonic() + JOIN_S
        while True:
            try:
                return socket.create_connection((address, port), timeout=JOIN_S)
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)


def send(peer: socket.socket, values: Vector) -> None:
    raw = values.tobytes()
    peer.sendall(struct.pack("!I", len(raw)) + raw)


def receive(peer: socket.socket) -> Vector:
    values = array.array("d")
    values.frombytes(exactly(peer, struct.unpack("!I", exactly(peer, 4))[0]))
    return values


def exactly(peer: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        part = peer.recv(size - len(got))
        if not part:
            sys.exit("a peer went away")
        got += part
    return bytes(got)


def points(rank: int) -> Iterator[Point]:
    """This rank's share: a place in the square, and 1 when it lies inside of the circle."""
    rng = random.Random(1000 + rank)  # noqa: S311
    for _ in range(POINTS):
        x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
        yield x, y, 1.0 if math.hypot(x, y) < 0.7 else 0.0


def forward(weights: Vector, x: float, y: float) -> tuple[list[float], float]:
    """Hidden activations and the guess. A hidden unit has four weights: from x, from y, its bias, to the output."""
    hidden = [math.tanh(weights[at] * x + weights[at + 1] * y + weights[at + 2]) for at in range(0, 4 * HIDDEN, 4)]
    logit = weights[4 * HIDDEN] + sum(weights[4 * unit + 3] * value for unit, value in enumerate(hidden))
    return hidden, 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def gradient(weights: Vector, share: list[Point]) -> Vector:
    """The mean gradient over this rank's share, with its mean loss as the last value."""
    slopes = array.array("d", bytes(8 * (4 * HIDDEN + 2)))
    for x, y, truth in share:
        hidden, guess = forward(weights, x, y)
        error = guess - truth
        slopes[4 * HIDDEN] += error
        slopes[4 * HIDDEN + 1] -= math.log(max(guess if truth else 1.0 - guess, 1e-12))
        for unit, value in enumerate(hidden):
            at = 4 * unit
            inward = error * weights[at + 3] * (1.0 - value * value)
            slopes[at] += inward * x
            slopes[at + 1] += inward * y
            slopes[at + 2] += inward
            slopes[at + 3] += error * value
    return array.array("d", (slope / len(share) for slope in slopes))


class Adam:
    """The optimiser; every rank keeps the same moments, because every rank sees the same average."""

    def __init__(self, size: int) -> None:
        self.first = [0.0] * size
        self.second = [0.0] * size

    def move(self, weights: Vector, slopes: Vector, step: int) -> None:
        for index in range(len(weights)):
            slope = slopes[index]
            self.first[index] += 0.1 * (slope - self.first[index])
            self.second[index] += 0.01 * (slope * slope - self.second[index])
            ahead = self.first[index] / (1 - 0.9**step)
            scale = math.sqrt(self.second[index] / (1 - 0.99**step))
            weights[index] -= RATE * ahead / (scale + 1e-8)


def main() -> int:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "23456"))
    print(f"rank {rank} of {world}: joining at {address}:{port}", flush=True)
    ring = Ring(rank, world, address, port)
    rng = random.Random(7)  # noqa: S311
    weights = array.array("d", (rng.uniform(-1, 1) for _ in range(4 * HIDDEN + 1)))
    optimiser, share, loss = Adam(len(weights)), list(points(rank)), math.inf
    for step in range(1, STEPS + 1):
        average = ring.mean(gradient(weights, share))
        loss = average.pop()
        optimiser.move(weights, average, step)
        if step % 10 == 0 or step == 1:
            print(f"rank {rank} step {step}/{STEPS} loss {loss:.4f}", flush=True)
        time.sleep(PAUSE_S)
    print(f"rank {rank}: {'learned' if loss < GOOD_LOSS else 'did not learn'}, loss {loss:.4f}", flush=True)
    return 0 if loss < GOOD_LOSS else 1


if __name__ == "__main__":
    sys.exit(main())
