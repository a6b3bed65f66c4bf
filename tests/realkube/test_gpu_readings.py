"""A dcgm-exporter behind the proxy of a real kube-apiserver is read with the account of the fleet, once it has the right to."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from fleet.core import gpu_readings
from fleet.kube.resources import NAMESPACES, PODS
from fleet.member.client import MemberClient
from fleet.models import Cluster, GpuScrape, NodeReading
from fleet.services.gpus import scraping
from simulator.node.gpu_exporters import NAME, NAMESPACE
from tests.fleet.services.gpus.builders import be_unhurried, read
from tests.realkube.builders import RealWorld
from tests.realkube.control_plane import needs_realkube
from tests.simulator.casting import until

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]
NODE = "north-pool0-0"
BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
TEXT = b"""# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA A100",Hostname="n",container="c",namespace="ns",pod="p"} 93
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",modelName="NVIDIA A100",Hostname="n",container="c",namespace="ns",pod="p"} 61000
"""


def own_address() -> str:
    """Of this machine; an API server passes nothing on to loopback addresses. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


class Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(TEXT)


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address at which it listens; its port is any that is free."""
    address = own_address()
    if not address or address.startswith("127."):
        pytest.skip("this machine has no address but loopback, which API servers do not pass requests on to")
    server = ThreadingHTTPServer((address, 0), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    be_unhurried(monkeypatch)
    monkeypatch.setattr(scraping, "PORT", server.server_address[1])
    yield address
    server.shutdown()
    server.server_close()


def install(client: MemberClient, address: str) -> None:
    """Its pod runs on a node, and has the address of the exporter."""
    client.create(NAMESPACES.path(), {"metadata": {"name": NAMESPACE}})
    spec = {"nodeName": NODE, "containers": [{"name": NAME, "image": "i"}]}
    client.create(PODS.path(NAMESPACE), {"metadata": {"name": NAME, "labels": {"app": NAME}}, "spec": spec})
    pod = PODS.path(NAMESPACE, NAME)
    until(lambda: (client.get(pod).get("status") or {}).get("phase") == "Running")
    addresses = {"podIP": address, "podIPs": [{"ip": address}]}
    client.merge_patch(PODS.path(NAMESPACE, NAME, "status"), {"status": addresses})


def test_it_is_read_through_the_api_server_with_the_fleets_account(real: RealWorld, exporter: str) -> None:
    [member] = real.join("north")
    install(member.client, exporter)
    now = timezone.now()
    assert read(now) == 1
    assert "needs the verb get on pods/proxy in namespace gpu-operator" in GpuScrape.objects.get().message
    assert Cluster.objects.get(name="north").state == Cluster.State.READY
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "convoy-fleet-gpu-metrics"}
    subjects = [{"kind": "ServiceAccount", "namespace": "convoy-system", "name": "convoy-fleet"}]
    member.client.create(BINDINGS, {"metadata": {"name": "convoy-fleet"}, "roleRef": role, "subjects": subjects})
    # The right counts once the API server has seen the binding.
    until(lambda: reads_something(now))
    [reading] = gpu_readings.loaded(NodeReading.objects.get(node=NODE).gpus)
    assert (reading.utilization, reading.memory_used, reading.owner) == (93, 61000, ("ns", "p"))


def reads_something(now) -> bool:
    GpuScrape.objects.update(due_at=now - timedelta(seconds=1))
    read(now)
    return NodeReading.objects.exists()
