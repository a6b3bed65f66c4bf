"""Three real members for the whole session, and a world of the product around them for each test."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.realkube.builders import RealWorld
from tests.realkube.control_plane import Etcd
from tests.realkube.member import RealMember
from tests.support.fixtures import unswept, worker, world
from tests.support.world import World

__all__ = ["unswept", "worker", "world"]
NAMES = ("north", "south", "west")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RealMember]]:
    home = tmp_path_factory.mktemp("realkube")
    etcd = Etcd(home / "etcd")
    members = [RealMember(name, home, etcd, 4, 4) for name in NAMES]
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
