"""One suite, two API servers: the simulated one and, where KUBEBUILDER_ASSETS is set, a real one. The real one is right."""

import itertools
from collections.abc import Iterator

import pytest
from kubernetes import config

from fleet.kube.resources import NAMESPACES
from fleet.member.client import MemberClient
from fleet.simulator.apiserver.server import ApiServer
from tests.contract.target import Target
from tests.realkube.control_plane import RealControlPlane, needs_realkube

_numbers = itertools.count()


@pytest.fixture(scope="session")
def real_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    plane = RealControlPlane(tmp_path_factory.mktemp("real"))
    try:
        plane.start()
        plane.start_controllers()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def simulated_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    server = ApiServer("north", tmp_path_factory.mktemp("simulated"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session", params=["simulator", pytest.param("real", marks=needs_realkube)])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "real":
        plane = request.getfixturevalue("real_plane")
        access, kubeconfig, compact = plane.access(), plane.kubeconfig(), plane.compact
    else:
        server = request.getfixturevalue("simulated_server")
        access, kubeconfig, compact = server.access(), server.kubeconfig(), server.forget
    member = MemberClient(access)
    api = config.new_client_from_config_dict(kubeconfig)
    yield Target(request.param, member, api, access, compact)
    api.close()
    member.close()


@pytest.fixture
def namespace(target: Target) -> str:
    """A fresh one for each test, left behind: the server goes at the end of the session."""
    name = f"ns-{next(_numbers)}"
    target.member.create(NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name
