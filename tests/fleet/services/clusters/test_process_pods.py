"""Which clusters of the fleet are real, written down for the simulators of the same machine."""

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client

from fleet.models import Cluster
from fleet.services.clusters import process_pods
from simulator.node.runtime.isolation import DEFAULT_NAMESPACES, Policy


@pytest.fixture
def home(settings: LazySettings, tmp_path: Path) -> Path:
    settings.CONVOY_HOME = tmp_path
    (tmp_path / "simulator").mkdir()
    (tmp_path / "simulator" / "north.kubeconfig").write_text(
        "clusters:\n- cluster:\n    server: https://127.0.0.1:7001\n"
    )
    return tmp_path


def refusal(home: Path) -> str:
    return Policy.of({"CONVOY_FLEET_FILE": str(process_pods.fleet_file())}).refusal("default")


def test_a_fleet_of_simulated_clusters_allows_processes(home: Path) -> None:
    assert "until the control plane has listed" in refusal(home)
    process_pods.publish([Cluster(name="north", server="https://127.0.0.1:7001")])
    assert not refusal(home)


def test_one_real_cluster_turns_them_off_and_its_leaving_on(home: Path) -> None:
    simulated = Cluster(name="north", server="https://127.0.0.1:7001")
    process_pods.publish([simulated, Cluster(name="prod", server="https://prod.example:6443")])
    assert "beside real clusters (prod)" in refusal(home)
    process_pods.publish([simulated])
    assert not refusal(home)


def test_it_writes_nothing_where_there_is_no_simulator(settings: LazySettings, tmp_path: Path) -> None:
    settings.CONVOY_HOME = tmp_path
    process_pods.publish([Cluster(name="prod", server="https://prod.example:6443")])
    assert not process_pods.fleet_file().exists()
    assert not list(tmp_path.iterdir())


def test_the_namespaces_shown_are_those_the_simulators_allow() -> None:
    assert process_pods.DEFAULT_NAMESPACES == DEFAULT_NAMESPACES


def test_who_signs_in_is_told_where_processes_may_run(home: Path) -> None:
    assert process_pods.namespaces({}) == []
    process_pods.publish([Cluster(name="north", server="https://127.0.0.1:7001")])
    assert process_pods.namespaces({}) == ["arena-system", "default"]
    assert process_pods.namespaces({"CONVOY_PROCESS_PODS": "off"}) == []
    process_pods.publish([Cluster(name="prod", server="https://prod.example:6443")])
    assert process_pods.namespaces({}) == []
    assert process_pods.namespaces({"CONVOY_PROCESS_PODS": "b,a"}) == ["a", "b"]


def test_it_is_said_at_sign_in(home: Path, db: None) -> None:
    process_pods.publish([])
    assert Client().get("/api/v1/session/").json()["process_pods"] is True
