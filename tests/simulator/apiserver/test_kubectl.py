"""Stock kubectl against the simulated API server, as a person types it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from fleet.kube import crds
from simulator.apiserver.server import ApiServer

KUBECTL = Path(sys.executable).with_name("kubectl")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: train}}
spec:
  containers:
  - {name: main, image: i, env: [{name: SEED, value: '1'}]}
"""
Kubectl = Callable[..., str]

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed beside this Python")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    server = ApiServer("north", home / "member")
    server.start()
    (home / "config").write_text(yaml.safe_dump(server.kubeconfig()))
    base = [str(KUBECTL), "--kubeconfig", str(home / "config"), "--cache-dir", str(home / "cache")]

    def run(*words: str, text: str = "", fails: bool = False) -> str:
        done = subprocess.run([*base, *words], input=text, capture_output=True, text=True, timeout=180)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    yield run
    server.stop()


@pytest.fixture
def a_pod(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl("create", "-f", "-", text=POD)
    yield kubectl
    kubectl("delete", "pod", "p", "--ignore-not-found", "--wait", "--timeout=10s")


def test_it_lists_kinds(kubectl: Kubectl) -> None:
    assert {"pods", "jobs", "namespaces"} <= {line.split()[0] for line in kubectl("api-resources").splitlines()}


def test_it_gets_and_describes_what_was_created(a_pod: Kubectl) -> None:
    assert a_pod("get", "pods", "-o", "name", "-l", "app=train") == "pod/p\n"
    assert "SEED:" in a_pod("describe", "pod", "p")
    assert a_pod("logs", "p") == ""


def test_it_shows_the_usual_columns(a_pod: Kubectl) -> None:
    head, row = a_pod("get", "pods").splitlines()
    assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["p", "0/1", "Pending", "0"]
    assert a_pod("get", "ns", "default", "--no-headers").split()[:2] == ["default", "Active"]
    assert a_pod("get", "pods", "-o", "wide", "-w", "--request-timeout=1s").splitlines()[0].split()[-1] == "NODE"


def test_it_applies_twice_and_changes_one_thing(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", text=POD) == "pod/p created\n"
    assert kubectl("apply", "-f", "-", text=POD) == "pod/p unchanged\n"
    assert kubectl("apply", "-f", "-", text=POD.replace("image: i", "image: j")) == "pod/p configured\n"
    assert kubectl("get", "pod", "p", "-o", "jsonpath={.spec.containers[0].image}") == "j"
    assert kubectl("delete", "pod", "p", "--wait", "--timeout=10s").startswith('pod "p" deleted')


def test_it_labels(a_pod: Kubectl) -> None:
    a_pod("label", "pod", "p", "team=vision")
    a_pod("label", "pod", "p", "app-")
    assert a_pod("get", "pod", "p", "-o", "jsonpath={.metadata.labels}") == '{"team":"vision"}'


def test_it_watches(a_pod: Kubectl) -> None:
    assert a_pod("get", "pods", "-w", "--request-timeout=1s", "-o", "name").startswith("pod/p\n")


def test_it_waits_for_conditions(kubectl: Kubectl) -> None:
    definition = crds.definitions()[0]
    kubectl("apply", "-f", "-", text=json.dumps(definition))
    assert "condition met" in kubectl("wait", "--for=condition=established", "crd", "--all", "--timeout=10s")


def test_it_waits_for_conditions_in_vain(a_pod: Kubectl) -> None:
    assert "timed out" in a_pod("wait", "--for=condition=Ready", "pod/p", "--timeout=1s", fails=True)


def test_it_says_what_is_not_there(kubectl: Kubectl) -> None:
    assert 'pods "q" not found' in kubectl("get", "pod", "q", fails=True)
    assert "doesn't have a resource type" in kubectl("get", "nothings", fails=True)


def test_it_may_do_everything(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"


def test_it_says_who_one_is_and_what_one_may(kubectl: Kubectl) -> None:
    assert kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "admin"
    assert "*.*" in kubectl("auth", "can-i", "--list")
