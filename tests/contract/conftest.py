"""One suite, three API servers: the simulated member, the fleet's own, and, where KUBEBUILDER_ASSETS is set, a real one.

The real one is right. What the fleet does not have is said by the test that needs it, with the reason (`Target.members_only`).
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from kubernetes import config

from fleet.changes import journal
from fleet.kube.resources import CONFIG_MAPS, NAMESPACES
from fleet.management.commands.write_kubeconfig import kubeconfig
from fleet.member.client import Access, MemberClient
from fleet.models import Token
from fleet.services.authorization.access import TOKEN_LENGTH, TOKEN_PREFIX, digest
from simulator.apiserver.server import ApiServer
from tests.contract.target import Target, config_map, until
from tests.realkube.control_plane import RealControlPlane, needs_realkube
from tests.support import kept
from tests.support.kubectl import Kubectl, served
from tests.support.people import person

TOKEN = TOKEN_PREFIX.ljust(TOKEN_LENGTH, "t")
_numbers = itertools.count()
Server = tuple[Access, dict, Callable[[], None]]
"""How it is reached, the same as a kubeconfig, and what makes it forget its history."""


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    started: Server = kept.for_folder(request, "real", lambda: running_plane(tmp_path_factory.mktemp("real")))
    return started


@contextmanager
def running_plane(home: Path) -> Iterator[Server]:
    plane = RealControlPlane(home)
    try:
        plane.start()
        plane.start_controllers()
        yield plane.access(), plane.kubeconfig(), plane.compact
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = ApiServer("north", tmp_path_factory.mktemp("simulated"))
    server.start()
    yield server.access(), server.kubeconfig(), server.forget
    server.stop()


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with served(tmp_path_factory.mktemp("hub")) as kubectl:
        yield kubectl


@pytest.fixture(scope="session")
def hub(door: Kubectl) -> Server:
    authority = (settings.CONVOY_HOME / "pki" / "ca.pem").read_text()
    access = Access(f"https://127.0.0.1:{door.port}", ca_pem=authority, token=TOKEN)
    return access, kubeconfig(access.server, authority.encode(), "ada", TOKEN), lambda: journal.compact(1)


_HUB = pytest.param("hub", marks=pytest.mark.django_db(transaction=True))
_REAL = pytest.param("real", marks=needs_realkube)


@pytest.fixture(scope="module", params=["simulator", _HUB, _REAL])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    access, document, compact = request.getfixturevalue(request.param)
    member = MemberClient(access)
    api = config.new_client_from_config_dict(document)
    yield Target(request.param, member, api, access, compact)
    api.close()
    member.close()


@pytest.fixture(autouse=True)
def known(target: Target, request: pytest.FixtureRequest) -> Iterator[None]:
    """The one whose token is used; each test of a fleet has a database of its own, with something in its history.

    The database goes with its last watch: to one that is still open, an emptied history is a compacted one.
    """
    if target.name != "hub":
        yield
        return
    request.getfixturevalue("transactional_db")
    door = request.getfixturevalue("door")
    ada = person("ada", superuser=True)
    Token.objects.create(user=ada, name="contract", digest=digest(TOKEN), created_at=timezone.now())
    target.member.create(CONFIG_MAPS.path("default"), config_map("first"))
    yield
    until(lambda: not door.requests)


@pytest.fixture
def namespace(target: Target) -> str:
    """A fresh one for each test, left behind: the server goes at the end of the session."""
    name = f"ns-{next(_numbers)}"
    target.member.create(NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def newer(target: Target) -> None:
    if target.name == "real":
        pytest.skip("the real server here is 1.20, from before it")


@pytest.fixture(scope="module")
def pods(target: Target) -> None:
    target.members_only("it runs no pods and has no nodes; its members do")


@pytest.fixture(scope="module")
def definitions(target: Target) -> None:
    target.members_only("which kinds it serves is a matter of its code")


@pytest.fixture(scope="module")
def defaults(target: Target) -> None:
    target.members_only("a job stays as it was written until a member fills in the rest")


@pytest.fixture(scope="module")
def finalizers(target: Target) -> None:
    target.members_only("what has to be done before a job goes is its own business, nothing else may hold an object")


@pytest.fixture(scope="module")
def owners(target: Target) -> None:
    target.members_only("its objects own nothing; the garbage of a job is in its members and collected there")


@pytest.fixture(scope="module")
def namespaces(target: Target) -> None:
    target.members_only("a namespace is there as soon as something is in it, and nothing deletes all that is in one")


@pytest.fixture(scope="module")
def written_events(target: Target) -> None:
    target.members_only("its events are written by itself alone")


@pytest.fixture(scope="module")
def bodies(target: Target) -> None:
    target.members_only("its history says that an object changed, not what it was: what is past is told as it is now")
