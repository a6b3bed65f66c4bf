"""exec, attach and port-forward through the fleet to a real kube-apiserver: what it takes, translates, refuses and fails at.

Behind the API server stands a stand-in for the kubelet, or none.
"""

import http.server
import re
import threading
import urllib.request

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import NODES, PODS
from fleet.member.client import MemberClient
from fleet.models import Cluster
from fleet.services.clusters import clusters
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.realkube.control_plane import RealControlPlane, needs_realkube
from tests.realkube.stream_kubelet import StreamKubelet
from tests.support.kubectl import served

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    home = tmp_path_factory.mktemp("real")
    made = RealControlPlane(home, None, "--kubelet-preferred-address-types=InternalIP")
    kubelet = StreamKubelet(home)
    made.start()
    kubelet.start()
    client = MemberClient(made.access())
    for node, port in (("n1", kubelet.port), ("down", 9)):
        client.create(NODES.path(), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
        status = {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        }
        client.merge_patch(NODES.path(name=node, subresource="status"), {"status": status})
    for name, node in (("a", "n1"), ("b", "down"), ("c", "")):
        spec = {"containers": [{"name": "main", "image": "x"}], **({"nodeName": node} if node else {})}
        body = {"metadata": {"name": name}, "spec": {**spec, "automountServiceAccountToken": False}}
        client.create(PODS.path("default"), {"apiVersion": "v1", "kind": "Pod", **body})
        client.merge_patch(PODS.path("default", name, "status"), {"status": {"phase": "Running"}})
    yield made
    client.close()
    kubelet.stop()
    made.stop()


@pytest.fixture(params=["websocket", "spdy"])
def ada(request, transactional_db, plane, admin, tmp_path, monkeypatch):
    for name, value in SPDY.items() if request.param == "spdy" else ():
        monkeypatch.setenv(name, value)
    row = clusters.join("real", yaml.safe_dump(plane.kubeconfig()), by="test", now=timezone.now())
    Member("real", row).pods(*(a_pod(name, namespace="default") for name in "abc"))
    with served(tmp_path) as kubectl:
        yield kubectl.as_user("ada")


def test_commands_and_ports_pass_through_a_real_api_server(ada):
    assert ada.says("exec", "-i", "a", "--", "tr", "a-z", "A-Z", given="hello\n") == "HELLO\n"
    done = ada.tries("exec", "a", "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n"), done
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        with ada.running("port-forward", "pod/a", f":{there.server_port}") as forwarding:
            port = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())[1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
                assert answer.status == 200
        there.shutdown()


def test_the_api_servers_own_error_is_passed_on(ada):
    assert "127.0.0.1:9" in ada.refused("exec", "b", "--", "ls")
    assert "does not have a host assigned" in ada.refused("exec", "c", "--", "ls")


def test_where_persons_are_impersonated_the_members_own_rights_decide(ada):
    Cluster.objects.update(impersonation=True)
    assert re.search(
        r'User "convoy:ada" cannot (create|get) resource "pods/exec"', ada.refused("exec", "a", "--", "ls")
    )
