"""Stock kubectl where writing is more than a create: explain, apply on the server's side, warnings, diff, scale, drain."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from simulator.apiserver.server import ApiServer

KUBECTL = Path(sys.executable).with_name("kubectl")
CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: '1'}}"
GROUP = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gangs.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {kind: Gang, plural: gangs, singular: gang, listKind: GangList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.members, statusReplicasPath: .status.members}}
    schema:
      openAPIV3Schema:
        type: object
        description: Workers that start together.
        properties:
          spec:
            type: object
            properties:
              members: {type: integer, minimum: 1, default: 1, description: How many there are.}
          status: {type: object, properties: {members: {type: integer}}}
"""
GANG = "{apiVersion: example.test/v1, kind: Gang, metadata: {name: g}, spec: {members: 2}}"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed beside this Python")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    server = ApiServer("north", home / "member")
    server.start()
    (home / "config").write_text(yaml.safe_dump(server.kubeconfig()))
    base = [str(KUBECTL), "--kubeconfig", str(home / "config"), "--cache-dir", str(home / "cache")]

    def run(*words: str, text: str = "", fails: bool = False) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*base, *words], input=text, capture_output=True, text=True, timeout=180)
        assert (done.returncode != 0) == fails, done.stderr
        return done

    run("apply", "-f", "-", text=GROUP)
    run("wait", "--for=condition=established", "crd/gangs.example.test", "--timeout=10s")
    yield run
    server.stop()


@pytest.fixture
def config(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl("apply", "--server-side", "-f", "-", text=CONFIG)
    yield kubectl
    kubectl("delete", "configmap", "c", "--ignore-not-found")


def test_it_explains(kubectl: Kubectl) -> None:
    assert "The containers of the pod" in kubectl("explain", "pod.spec.containers").stdout
    assert "Workers that start together." in kubectl("explain", "gang").stdout
    told = kubectl("explain", "gang.spec.members").stdout
    assert "How many there are." in told and "FIELD: members <integer>" in told
    assert 'field "nothing" does not exist' in kubectl("explain", "pod.spec.nothing", fails=True).stderr


def test_it_applies_on_the_servers_side(config: Kubectl) -> None:
    assert "serverside-applied" in config("apply", "--server-side", "-f", "-", text=CONFIG).stdout
    other = CONFIG.replace("'1'", "'2'")
    words = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    refused = config(*words, text=other, fails=True).stderr
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.k' in refused
    config(*words, "--force-conflicts", text=other)
    assert config("get", "cm", "c", "-o", "jsonpath={.data.k}").stdout == "2"


def test_it_goes_over_from_the_clients_side_to_the_servers(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=CONFIG)
    kubectl("apply", "--server-side", "-f", "-", text=CONFIG.replace("k:", "j:"))
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data}").stdout == '{"j":"1"}'
    kubectl("delete", "cm", "c")


def test_it_warns_and_refuses_as_told(kubectl: Kubectl) -> None:
    wrong = CONFIG.replace(", data:", ", dta: {}, data:")
    refused = kubectl("create", "-f", "-", text=wrong, fails=True).stderr
    assert 'strict decoding error: unknown field "dta"' in refused
    warned = kubectl("create", "--validate=warn", "-f", "-", text=wrong)
    assert warned.stderr == 'Warning: unknown field "dta"\n'
    kubectl("delete", "cm", "c")


@pytest.mark.parametrize("side", [(), ("--server-side",)], ids=["client", "server"])
def test_it_tells_what_would_change(config: Kubectl, side: tuple[str, ...]) -> None:
    assert config("diff", *side, "-f", "-", text=CONFIG).stdout == ""
    changed = config("diff", *side, "-f", "-", text=CONFIG.replace("'1'", "'2'"), fails=True).stdout
    assert '-  k: "1"' in changed and '+  k: "2"' in changed


def test_it_scales_what_says_how(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=GANG)
    assert kubectl("scale", "gang", "g", "--replicas=5").stdout == "gang.example.test/g scaled\n"
    assert kubectl("get", "gang", "g", "-o", "jsonpath={.spec.members}").stdout == "5"
    assert "should be greater than or equal to 1" in kubectl("scale", "gang", "g", "--replicas=0", fails=True).stderr


def test_it_says_which_field_is_wrong(kubectl: Kubectl) -> None:
    refused = kubectl("apply", "-f", "-", text=GANG.replace("2}", "many}"), fails=True).stderr
    assert 'spec.members: Invalid value: "string": spec.members in body must be of type integer' in refused


@pytest.mark.parametrize(
    ("words", "path", "shown"),
    [
        (("job", "j", "--image=i", "--", "sleep", "5"), "{.spec.template.spec.containers[0].command}", '["sleep","5"]'),
        (("namespace", "n"), "{.status.phase}", "Active"),
        (("service", "clusterip", "s", "--tcp=80:web"), "{.spec.ports[0].targetPort}", "web"),
        (("priorityclass", "p", "--value=-5"), "{.value}", "-5"),
        (("secret", "generic", "x", "--from-literal=a=b"), "{.data.a}", "Yg=="),
        (("configmap", "m", "--from-literal=a=b"), "{.data.a}", "b"),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_it_creates_from_the_command_line(kubectl: Kubectl, words: tuple[str, ...], path: str, shown: str) -> None:
    made = kubectl("create", *words, "--save-config=false", "-o", "name") if "--" not in words else None
    name = made.stdout.strip() if made else kubectl("create", *words).stdout.split()[0]
    assert kubectl("get", name, "-o", f"jsonpath={path}").stdout == shown


def test_it_deletes_all_at_once(config: Kubectl) -> None:
    config("label", "cm", "c", "l=1")
    config("delete", "--raw", "/api/v1/namespaces/default/configmaps?labelSelector=l%3D1")
    assert "NotFound" in config("get", "cm", "c", fails=True).stderr
