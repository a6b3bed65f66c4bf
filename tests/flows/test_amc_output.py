"""``kubectl amc get`` in every form kubectl has, and followed over several clusters at once."""

import threading

import pytest
from kubernetes import client, config

from simulator.fault_parser import Fault
from tests.support.amc import Amc, cells
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(world, admin, tmp_path):
    """North and south have a config map each that the other lacks, and one of the same name."""
    for name, value in (("north", "2"), ("south", "1")):
        world.member(name, 1)
        for map_name in ("shared", f"only-{name}"):
            make(world, name, map_name, value)
    with served(tmp_path) as kubectl:
        yield Amc(kubectl.as_user("ada").file)


def core(world, name: str) -> client.CoreV1Api:
    return client.CoreV1Api(config.new_client_from_config_dict(world.members[name].kubeconfig()))


def make(world, cluster: str, name: str, value: str) -> None:
    body = {"metadata": {"name": name, "labels": {"of": cluster}}, "data": {"n": value}}
    core(world, cluster).create_namespaced_config_map("default", body)


def test_it_prints_templates_of_all_clusters(ada):
    template = r'{range .items[*]}{.metadata.annotations.convoy\.dev/cluster}/{.metadata.name}={.data.n}{"\n"}{end}'
    told = ada.says("get", "cm", "--sort-by", ".data.n", "-o", f"jsonpath={template}").splitlines()
    assert told == ["south/only-south=1", "south/shared=1", "north/only-north=2", "north/shared=2"]
    assert ada.says("get", "cm", "only-north", "-o", "jsonpath={.data.n}") == "2"


def test_it_prints_columns_of_ones_own(ada):
    header, *rows = cells(
        ada.says("get", "cm", "-l", "of=south", "-o", "custom-columns=NAME:.metadata.name,N:.data.n,X:.x")
    )
    assert header == ["NAME", "CLUSTER", "N", "X"]
    assert rows == [["only-south", "south", "1", "<none>"], ["shared", "south", "1", "<none>"]]


def test_it_sorts_the_rows_of_all_clusters_together(ada):
    rows = cells(ada.says("get", "cm", "--no-headers", "--sort-by", "{.data.n}"))
    assert [row[1] for row in rows] == ["south", "south", "north", "north"]
    rows = cells(ada.says("get", "cm", "--no-headers", "--field-selector", "metadata.name=shared", "--sort-by=.data.n"))
    assert [row[:2] for row in rows] == [["shared", "south"], ["shared", "north"]]


def test_it_refuses_what_it_cannot_print(ada):
    assert "custom-columns=NAME:PATH" in ada.refused("get", "cm", "-o", "go-template={{.x}}")
    assert "is not NAME:PATH" in ada.refused("get", "cm", "-o", "custom-columns=NAME")
    assert "not a template" in ada.refused("get", "cm", "-o", "jsonpath={.a")


class Followed:
    """The lines of a watch, as they come."""

    def __init__(self, process) -> None:
        self.lines: list[list[str]] = []
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _read(self, process) -> None:
        for each in process.stdout:
            self.lines.append(each.split())


def test_it_follows_several_clusters_in_one_stream(world, ada):
    with ada.running("get", "cm", "-w", "--output-watch-events") as process:
        told = Followed(process)
        world.until(lambda: len(told.lines) == 5, f"what there is: {told.lines}")
        assert told.lines[0] == ["EVENT", "NAME", "CLUSTER", "DATA", "AGE", "ADOPTION"]
        make(world, "south", "new", "3")
        world.until(lambda: ["ADDED", "new", "south"] in [each[:3] for each in told.lines], "what is made is told")
        core(world, "north").delete_namespaced_config_map("shared", "default")
        world.until(lambda: ["DELETED", "shared", "north"] in [each[:3] for each in told.lines], "what goes is told")


def test_it_goes_on_when_a_cluster_is_back(world, ada):
    with ada.running("get", "cm", "-w", "-o", "custom-columns=NAME:.metadata.name", "--no-headers") as process:
        told = Followed(process)
        world.until(lambda: len(told.lines) == 4, "what there is")
        world.members["south"].disturb(Fault("away"))
        make(world, "north", "meanwhile", "4")
        world.until(lambda: ["meanwhile", "north"] in told.lines, "the other is followed")
        world.members["south"].disturb(Fault("back"))
        make(world, "south", "back", "5")
        world.until(lambda: ["back", "south"] in told.lines, "it is followed again")
