"""Three real members for all files, and a world of the product around them for each test."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.realkube.builders import RealWorld
from tests.realkube.control_plane import Etcd
from tests.realkube.member import RealMember
from tests.support import kept
from tests.support.fixtures import unswept, worker, world
from tests.support.world import World

__all__ = ["unswept", "worker", "world"]
NAMES = ("north", "south", "west")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def members(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[RealMember]:
    started: list[RealMember] = kept.for_folder(
        request, "members", lambda: running_members(tmp_path_factory.mktemp("realkube"))
    )
    return started


@contextmanager
def running_members(home: Path) -> Iterator[list[RealMember]]:
    etcd = Etcd(home / "etcd")
    members = [RealMember(name, home, etcd, 4, 4, keeps_audit=name == NAMES[0]) for name in NAMES]
    etcd.start()
    try:
        with ThreadPoolExecutor() as together:
            list(together.map(RealMember.start, members))
        yield members
    finally:
        for member in members:
            member.close()
        etcd.stop()


@pytest.fixture
def real(world: World, members: list[RealMember]) -> Iterator[RealWorld]:
    with ThreadPoolExecutor() as together:
        list(together.map(RealMember.clear, members))
    yield RealWorld(world, members, f"team-{next(_numbers)}")
