"""Pods as processes on the network of their member: addresses, names, the API, nothing else. Real processes."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.kube.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICES
from fleet.member.client import MemberClient
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from simulator.node.nodes import Pool
from simulator.node.runtime.network import MemberNetwork
from tests.simulator.casting import until
from tests.support.isolation import needs_network

CALL = """
import json, os, ssl, sys, urllib.request, urllib.error
base = "/var/run/secrets/kubernetes.io/serviceaccount/"
context = ssl.create_default_context(cafile=base + "ca.crt")
def call(method, path, body=None):
    url = "https://%s:%s%s" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"], path)
    headers = {"Authorization": "bearer " + open(base + "token").read(), "Content-Type": "application/json"}
    request = urllib.request.Request(url, body and json.dumps(body).encode(), headers, method=method)
    try:
        return urllib.request.urlopen(request, context=context, timeout=60).status
    except urllib.error.HTTPError as e:
        return e.code
"""
SERVE = """
import socket
with socket.create_server(("", 5000)) as door:
    while True:
        connection, address = door.accept()
        connection.sendall(("heard " + address[0]).encode()); connection.close()
"""
ASK = """
import socket, sys, time
for name in {names}:
    for _ in range(1200):
        try:
            with socket.create_connection((name, 5000), 5) as s:
                print(name, s.recv(99).decode(), flush=True)
                break
        except OSError as e:
            last = e
            time.sleep(0.05)
    else:
        print(name, last, flush=True)
"""


@pytest.fixture
def member(tmp_path: Path) -> Iterator[SimulatedMember]:
    tmp_path.chmod(0o755)
    member = SimulatedMember("north", tmp_path / "north", Shape((Pool("cpu", 1, "8", "32Gi"),)), start_delay_s=0.0)
    member.start()
    yield member
    member.stop()


@pytest.fixture
def client(member: SimulatedMember) -> Iterator[MemberClient]:
    client = MemberClient(member.access())
    yield client
    client.close()


def run(client: MemberClient, name: str, script: str, namespace: str = "default", **spec: object) -> None:
    container = {"name": "main", "image": "x", "command": ["python3", "-u", "-c", textwrap.dedent(script)]}
    meta = {"name": name, "labels": {"pod": name}, "annotations": {"convoy.dev/run": "process"}}
    body = {"restartPolicy": "Never", "containers": [container], **spec}
    client.create(PODS.path(namespace), {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body})


def service(client: MemberClient, name: str, pod: str) -> None:
    spec = {"clusterIP": "None", "selector": {"pod": pod}, "ports": [{"port": 5000}]}
    client.create(
        SERVICES.path("default"), {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
    )


def output(client: MemberClient, name: str) -> str:
    """The log of the pod once it has ended."""
    path = PODS.path("default", name)
    until(lambda: (client.get(path).get("status") or {}).get("phase") in ("Succeeded", "Failed"))
    return client.get_text(f"{path}/log")


@needs_network
def test_pods_reach_one_another_by_every_name_of_a_service_and_see_true_addresses(client: MemberClient) -> None:
    run(client, "server", SERVE, hostname="rank0", subdomain="ring")
    for name in ("door", "ring"):
        service(client, name, "server")
    names = ["door", "door.default", "door.default.svc", "door.default.svc.cluster.local", "rank0.ring.default.svc"]
    run(client, "asker", ASK.format(names=names))
    heard = output(client, "asker").splitlines()
    address = client.get(PODS.path("default", "asker"))["status"]["podIP"]
    assert heard == [f"{name} heard {address}" for name in names]


@needs_network
def test_a_name_that_comes_into_being_later_is_found_by_a_running_pod(client: MemberClient) -> None:
    run(client, "asker", ASK.format(names=["late"]))
    until(lambda: client.get(PODS.path("default", "asker"))["status"].get("phase") == "Running")
    run(client, "server", SERVE)
    service(client, "late", "server")
    assert "late heard 10." in output(client, "asker")


@needs_network
def test_two_pods_listen_on_the_same_port(client: MemberClient) -> None:
    for name in ("one", "two"):
        run(client, name, SERVE)
        service(client, name, name)
    run(client, "asker", ASK.format(names=["one", "two"]))
    assert output(client, "asker").count("heard") == 2


@needs_network
def test_it_may_do_with_the_api_what_the_chart_of_its_operator_grants_and_no_more(client: MemberClient) -> None:
    client.create(SECRETS.path("default"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    client.create(CONFIG_MAPS.path("default"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    calls = {
        "/api/v1/namespaces/default/pods": 200,
        "/api/v1/namespaces/default/configmaps/c": 200,
        "/apis/elastic.iml.github.io/v1alpha1/namespaces/default/elasticjobs": 200,
        "/api/v1/namespaces/default/secrets/s": 403,
        "/api/v1/namespaces/kube-system/pods": 403,
        "/api/v1/pods": 403,
        "/api/v1/nodes": 403,
        "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs": 403,
        "/api/v1/namespaces/default/serviceaccounts/default/token": 403,
    }
    run(client, "asker", f"{CALL}\nprint([call('GET', path) for path in {list(calls)}])")
    assert output(client, "asker").strip() == str(list(calls.values()))


@needs_network
def test_it_gets_no_token_where_it_wants_none(client: MemberClient) -> None:
    run(client, "asker", "import os; print(os.path.exists('/var/run/secrets'))", automountServiceAccountToken=False)
    assert output(client, "asker").strip() == "False"


@needs_network
def test_a_token_of_a_fault_denied_account_is_refused(client: MemberClient, member: SimulatedMember) -> None:
    member.faults.denied.add("default/default")
    run(client, "asker", f"{CALL}\nprint(call('GET', '/api/v1/namespaces/default/pods'))")
    assert output(client, "asker").strip() == "403"


@needs_network
def test_it_reaches_no_server_of_this_machine(client: MemberClient, member: SimulatedMember) -> None:
    port = int(member.access().server.rsplit(":", 1)[1])
    script = f"""
    import socket
    for host in ("127.0.0.1", "10.0.0.1", "169.254.169.254", socket.gethostbyname("kubernetes")):
        for port in ({port}, 22, 5432):
            try:
                socket.create_connection((host, port), 2); print("reached", host, port)
            except OSError as e:
                print("no")
    """
    run(client, "asker", script)
    assert output(client, "asker").split() == ["no"] * 12


@needs_network
def test_it_keeps_its_address_over_a_restart(client: MemberClient) -> None:
    run(client, "server", SERVE)
    service(client, "server", "server")
    script = "import os, socket; socket.create_connection(('server', 5000), 9); open('/dev/null'); os._exit(1)"
    run(client, "asker", script, restartPolicy="OnFailure")
    path = PODS.path("default", "asker")
    until(lambda: client.get(path)["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) > 1)
    status = client.get(path)["status"]
    run(client, "other", ASK.format(names=["server"]))
    assert status["podIP"] != client.get(PODS.path("default", "server"))["status"]["podIP"]
    assert "heard" in output(client, "other")


@needs_network
def test_it_makes_a_new_network_after_its_switch_was_killed(tmp_path: Path) -> None:
    network = MemberNetwork(78, "https://127.0.0.1:1")
    assert network.fault == "" and network._process is not None
    network._process.kill()
    network._process.wait()
    with pytest.raises(OSError, match="the switch has ended"), network.of("10.78.1.2"):
        pass
    assert network.fault == ""
    with network.of("10.78.1.2") as descriptors:
        assert descriptors
    network.close()


@needs_network
def test_a_pod_with_many_open_connections_keeps_no_other_from_the_api(client: MemberClient) -> None:
    greedy = """
    import os, socket, time
    held = [socket.create_connection((os.environ["KUBERNETES_SERVICE_HOST"], 443), 20) for _ in range(400)]
    print("holds", flush=True)
    time.sleep(600)
    """
    run(client, "greedy", greedy)
    until(lambda: (client.get(PODS.path("default", "greedy")).get("status") or {}).get("phase") == "Running")
    until(lambda: "holds" in client.get_text(f"{PODS.path('default', 'greedy')}/log"))
    run(client, "asker", f"{CALL}\nprint(call('GET', '/api/v1/namespaces/default/pods'))")
    assert output(client, "asker").strip() == "200"


@needs_network
def test_many_pods_at_once_have_an_address_each(tmp_path: Path) -> None:
    network = MemberNetwork(77, "https://127.0.0.1:1")
    assert network.fault == ""
    opened = [network.of(f"10.77.1.{i}") for i in range(2, 42)]
    descriptors = [entered.__enter__() for entered in opened]
    assert len({number for one in descriptors for number in one}) == sum(map(len, descriptors))
    for entered in opened:
        entered.__exit__(None, None, None)
    network.close()
    with pytest.raises(OSError, match="closed"), network.of("10.77.1.2"):
        pass


def test_a_pod_says_so_where_the_machine_makes_no_network(
    client: MemberClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemberNetwork, "_start", lambda _self: "unshare: Operation not permitted")
    run(client, "alone", "print('ran')")
    assert output(client, "alone").strip() == "ran"
    events = client.get(EVENTS.path("default"))["items"]
    assert [e["reason"] for e in events if e["involvedObject"]["name"] == "alone"] == ["LoopbackNetwork"]
