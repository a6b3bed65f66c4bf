"""exec, attach, cp and port-forward at the fleet, through a stock kubectl over WebSocket and over SPDY.

The pod runs as a real process of a simulated member. What a real kubelet does inside a container is not shown here: the
fleet passes bytes, and `tests/realkube` shows that a real API server takes the same requests.
"""

import os
import re
import subprocess
import textwrap
import urllib.request
from functools import partial

import kubernetes
import pytest
import yaml
from django.utils import timezone
from kubernetes import config
from kubernetes.stream import portforward, stream, ws_client

from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.models import AuditEntry, Cluster, Grant, Token
from fleet.services.clusters import clusters
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from simulator.node.nodes import Pool
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.isolation import needs_isolation
from tests.support.kubectl import served
from tests.support.members import eventually
from tests.support.people import person

pytestmark = [needs_isolation, pytest.mark.django_db(transaction=True)]
SERVE = """
import http.server, sys, threading, time
def count():
    while True:
        print("tick", flush=True)
        time.sleep(0.1)
threading.Thread(target=count, daemon=True).start()
http.server.test(http.server.SimpleHTTPRequestHandler, port=8000, bind="127.0.0.1")
"""
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
NAMESPACE, POD = "default", "llama-master-0"


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    """A member with a process pod, and a pretended one."""
    home = tmp_path_factory.mktemp("member")
    for folder in (home, *home.parents[:2]):
        folder.chmod(0o755)
    made = SimulatedMember("north", home / "north", Shape((Pool("cpu", 1, "8", "32Gi"),)), start_delay_s=0.0)
    made.start()
    client = MemberClient(made.access())
    for name, notes in ((POD, {"convoy.dev/run": "process"}), ("pretended", {})):
        container = {"name": "main", "image": "x", "command": ["python3", "-u", "-c", textwrap.dedent(SERVE)]}
        container["env"] = [{"name": "GREETING", "value": "hello"}]
        body = {"metadata": {"name": name, "annotations": notes}, "spec": {"containers": [container]}}
        client.create(PODS.path(NAMESPACE), {"apiVersion": "v1", "kind": "Pod", **body})
        eventually(lambda name=name: client.get(PODS.path(NAMESPACE, name))["status"].get("phase") == "Running")
    eventually(lambda: "Serving HTTP" in client.get_text(PODS.path(NAMESPACE, POD, "log")))
    yield made
    client.close()
    made.stop()


@pytest.fixture
def north(transactional_db, member):
    row = clusters.join("north", yaml.safe_dump(member.kubeconfig()), by="test", now=timezone.now())
    shown = Member("north", row)
    shown.pods(a_pod(POD, namespace=NAMESPACE), a_pod("pretended", namespace=NAMESPACE))
    return shown


@pytest.fixture
def kubectl(north, admin, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture(params=["websocket", "spdy"])
def ada(request, kubectl, monkeypatch):
    for name, value in SPDY.items() if request.param == "spdy" else ():
        monkeypatch.setenv(name, value)
    return kubectl.as_user("ada")


def lines(subresource="exec"):
    rows = AuditEntry.objects.filter(kind=f"pods/{subresource}").order_by("pk")
    return list(rows.values_list("actor", "verb", "name", "outcome"))


def test_kubectl_speaks_the_protocol_that_this_test_is_about(ada, request):
    shown = ada.tries("-v=7", "exec", POD, "--", "true").stderr
    assert "101 Switching Protocols" in shown
    assert ("X-Stream-Protocol-Version" in shown) == ("spdy" in request.node.name), shown


def test_it_runs_a_command_in_the_pod_and_passes_its_input_output_and_exit_code_on(ada):
    assert ada.says("exec", POD, "--", "sh", "-c", "echo $GREETING; hostname; id -u").split() == [
        "hello", POD, "61042",
    ]  # fmt: skip
    text = "one\ntwo\n" * 20_000
    assert ada.says("exec", "-i", f"{POD}.north", "--", "cat", given=text) == text
    done = ada.tries("exec", POD, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert "err\n" in done.stderr


def test_a_terminal_is_one(ada):
    command = ada.command("exec", "-it", POD, "--", "sh", "-c", "test -t 0 && test -t 1 && stty size")
    script = f"import pty, sys; sys.exit(pty.spawn({command!r}))"
    done = subprocess.run(
        ["python3", "-c", script], capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL
    )
    assert re.search(r"\d+ \d+", done.stdout), done


def test_it_attaches_to_what_the_pod_prints(ada):
    with ada.running("attach", POD) as attached:
        assert "tick" in attached.stdout.readline()


def test_it_copies_files_there_and_back(ada, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(300_000))
    ada.says("cp", str(there), f"{NAMESPACE}/{POD}:/tmp/file")
    ada.says("cp", f"{NAMESPACE}/{POD}:/tmp/file", str(back))
    assert back.read_bytes() == there.read_bytes()


def test_it_forwards_a_port_and_says_when_nothing_listens_there(ada):
    with ada.running("port-forward", f"pod/{POD}", ":8000") as forwarding:
        port = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())[1]
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=180) as answer:
                assert b"Directory listing" in answer.read()
    with subprocess.Popen(
        ada.command("port-forward", f"pod/{POD}", ":8001"), stdout=-1, stderr=-1, text=True
    ) as forwarding:
        port = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())[1]
        with pytest.raises(OSError):  # noqa: PT011 - as the connection ends
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=180)
        forwarding.terminate()
        assert "refused" in forwarding.stderr.read()


def test_a_pretended_pod_is_answered_as_by_a_kubelet_that_cannot(ada):
    assert "has no process to enter" in ada.refused("exec", "pretended", "--", "ls")


def test_it_asks_for_the_role_that_submits_jobs(ada, kubectl):
    person("tina", (Grant.Role.VIEWER, NAMESPACE))
    person("otto", (Grant.Role.EDITOR, "vision"))
    person("eve", (Grant.Role.EDITOR, NAMESPACE))
    tina, otto, eve = (kubectl.as_user(name) for name in ("tina", "otto", "eve"))
    assert "it takes the role editor in namespace default" in tina.refused("exec", POD, "--", "ls")
    assert otto.refused("exec", POD, "--", "ls")
    assert "usr" in eve.says("exec", POD, "--", "ls", "/")
    for verb in ("create", "get"):  # over WebSocket it is a GET
        assert tina.tries("auth", "can-i", verb, "pods", "--subresource=exec").stdout.startswith("no")
        assert eve.says("auth", "can-i", verb, "pods", "--subresource=exec") == "yes\n"
    assert ("tina", "create", f"{POD}.north", "refused") in lines()


def test_it_writes_down_who_ran_what_where_from_when_to_when(ada):
    ada.says("exec", POD, "--", "echo", "secret of the sea")
    eventually(lambda: len(lines()) == 2)
    assert lines() == [("ada", "create", POD, "done"), ("ada", "end", POD, "done")]
    begun, over = AuditEntry.objects.filter(kind="pods/exec").order_by("pk")
    assert begun.after["command"] == ["echo", "secret of the sea"]
    assert (begun.cluster, begun.namespace) == ("north", NAMESPACE)
    assert "bytes out" in over.message
    assert over.at >= begun.at


@pytest.mark.parametrize("how", ["revoked", "deleted", "rights", "detached"])
def test_a_stream_ends_soon_after_its_caller_may_no_more(ada, kubectl, how):
    user = person("eve", (Grant.Role.EDITOR, NAMESPACE))
    eve = kubectl.as_user("eve")
    with eve.running("exec", POD, "--", "sh", "-c", "echo on; exec sleep 600") as running:
        assert running.stdout.readline() == "on\n"
        match how:
            case "revoked":
                Token.objects.filter(user=user).update(revoked_at=timezone.now())
            case "deleted":
                user.delete()
            case "rights":
                Grant.objects.filter(user=user).update(role=Grant.Role.VIEWER)
            case "detached":
                Cluster.objects.all().delete()
        eventually(lambda: running.poll() is not None)


def test_a_stream_over_the_limit_is_refused(ada, settings):
    settings.CONVOY_LIMITS = type(settings.CONVOY_LIMITS)(streams=1)
    with ada.running("exec", POD, "--", "sh", "-c", "echo on; exec sleep 600") as running:
        assert running.stdout.readline() == "on\n"
        assert "too many streams to pods are open: 1 for one user" in ada.refused("exec", POD, "--", "ls")
    eventually(lambda: ada.tries("exec", POD, "--", "ls").returncode == 0)


def test_what_is_no_upgrade_and_a_member_that_is_away_are_answered_in_words(ada, north, kubectl):
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}/exec?command=ls"
    assert "Upgrade request required" in ada.refused("get", "--raw", path)
    Cluster.objects.update(access={**north.row.access, "server": "https://127.0.0.1:9"})
    assert "cluster north" in ada.refused("exec", POD, "--", "ls")


def test_the_official_python_client_runs_commands(kubectl):
    configuration = config.new_client_from_config(str(kubectl.as_user("ada").file))
    api = kubernetes.client.CoreV1Api(configuration)
    call = partial(stream, api.connect_get_namespaced_pod_exec, f"{POD}.north", NAMESPACE, stdout=True, stderr=True)
    assert call(command=["echo", "hello"]) == "hello\n"
    session = call(command=["sh", "-c", "read word; echo got $word; exit 3"], stdin=True, _preload_content=False)
    session.write_stdin("it\n")
    session.run_forever(timeout=180)
    assert (session.read_stdout(), session.returncode) == ("got it\n", 3)


@pytest.mark.parametrize("offers", ["v4.channel.k8s.io", ""])
def test_python_clients_forward_ports(kubectl, offers, monkeypatch):
    """By numbered channels of a WebSocket, which the official client asks for by name and kr8s without one."""
    api = kubernetes.client.CoreV1Api(config.new_client_from_config(str(kubectl.as_user("ada").file)))
    for name in ("V5_CHANNEL_PROTOCOL", "V4_CHANNEL_PROTOCOL"):
        monkeypatch.setattr(ws_client, name, offers)
    forwarded = portforward(api.connect_get_namespaced_pod_portforward, f"{POD}.north", NAMESPACE, ports="8000,8001")
    open_port = forwarded.socket(8000)
    open_port.setblocking(True)
    open_port.sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert b"Directory listing" in b"".join(iter(partial(open_port.recv, 65536), b""))
    assert "refused" in forwarded.error(8001)
