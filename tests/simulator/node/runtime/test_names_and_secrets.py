"""What a pod finds that was made after it or in another namespace: optional Secrets, and Services by their whole names."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from simulator.node.runtime import names
from simulator.node.runtime.processes import add_late_secrets


def pod(name: str, namespace: str, *, optional: bool = True, **labels: str) -> dict:
    volume = {"name": "tls", "secret": {"secretName": "tls", "optional": optional}}
    meta = {"name": name, "namespace": namespace, "uid": name, "labels": labels}
    return {"metadata": meta, "spec": {"volumes": [volume]}, "status": {"phase": "Running"}}


def service(name: str, namespace: str) -> dict:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": {"app": name}}}


def test_services_of_other_namespaces_have_names_with_their_namespace_and_their_own_pods():
    mine, other, namesake = pod("a", "default", app="s"), pod("b", "system", app="s"), pod("c", "third", app="s")
    pods = [(mine, "10.0.0.1"), (other, "10.0.0.2"), (namesake, "10.0.0.3")]
    text = names.hosts_file(mine, pods, [service("s", "default"), service("s", "system")], "10.0.0.254", "api")
    lines = [line.split() for line in text.splitlines()]
    assert ["10.0.0.1", "s", "s.default", "s.default.svc", "s.default.svc.cluster.local"] in lines
    assert ["10.0.0.2", "s.system", "s.system.svc", "s.system.svc.cluster.local"] in lines
    assert not any(address == "10.0.0.3" for address, *_ in lines)


@pytest.mark.parametrize("optional", [True, False])
def test_an_optional_secret_that_is_made_later_is_added_and_what_is_there_stays(tmp_path: Path, optional: bool):
    place = tmp_path / "files" / "tls"
    place.mkdir(parents=True)
    made: dict[str, str] = {}

    def fetch(kind: str, namespace: str, name: str) -> Mapping[str, str]:
        if not made:
            raise LookupError(name)
        return made

    add_late_secrets(pod("a", "default", optional=optional), tmp_path, fetch)
    made["tls.crt"] = "first"
    add_late_secrets(pod("a", "default", optional=optional), tmp_path, fetch)
    made["tls.crt"] = "second"
    add_late_secrets(pod("a", "default", optional=optional), tmp_path, fetch)
    assert [file.read_text() for file in place.iterdir()] == (["first"] if optional else [])
