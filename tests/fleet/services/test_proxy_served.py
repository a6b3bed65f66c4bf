"""The way to a member through the fleet, over the real TLS server and a simulated member; asked by a stock kubectl."""

import json
import ssl
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.utils import timezone

from fleet.kube import pki
from fleet.kube.resources import PODS
from fleet.member.client import Access
from fleet.models import AuditEntry, Cluster, Grant
from fleet.services.members import impersonation, member_clients
from tests.support.members import PROXY, api, eventually, through
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)


def a_pod(name="a"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }


def test_a_stock_kubectl_works_on_a_member_through_the_fleet(ada):
    assert "pod/a created" in ada.says("create", "-n", "team", "-f", "-", given=json.dumps(a_pod()))
    header, row = ada.says("get", "pods", "-n", "team").splitlines()
    assert header.split()[:3] == ["NAME", "READY", "STATUS"] and row.split()[0] == "a"
    assert ada.says("get", "pod", "a", "-n", "team", "-ojsonpath={.spec.containers[0].image}") == "x"
    assert "deleted" in ada.says("delete", "pod", "a", "-n", "team", "--wait=false")


def test_it_passes_a_watch_on_as_it_happens_and_lets_go_of_it(ada, north):
    with ada.running("get", "pods", "-n", "team", "-w", "--no-headers", "-oname") as watching:
        api(north).create(PODS.path("team"), a_pod("b"))
        assert watching.stdout.readline().strip() == "pod/b"


def test_it_checks_the_callers_roles_and_not_the_members(kubectl, ada, viewer):
    person("tina", (Grant.Role.VIEWER, "team"))
    tina = through(kubectl.as_user("tina"))
    assert "No resources found" in tina.says("get", "pods", "-n", "team")
    assert "it takes the role editor in namespace team" in tina.refused("delete", "pod", "a", "-n", "team")
    assert "tina may not apply Secret in namespace team" in tina.refused("get", "secrets", "-n", "team")
    assert "may not read pods" in through(kubectl.as_user("sam")).refused("get", "pods", "-n", "team")


def test_it_says_where_exec_works(ada, north):
    api(north).create(PODS.path("team"), a_pod())
    assert "on the pods of fleet jobs at the fleet itself" in ada.refused("exec", "-n", "team", "a", "--", "ls")


def test_it_names_the_member_that_is_away_or_unknown(kubectl, ada, north):
    north.stop()
    assert "cluster north" in ada.refused("get", "--raw", "/version")
    code, told = ask(ada, "south", "/version")
    assert (code, told["reason"], told["details"]["name"]) == (404, "NotFound", "south")


def test_it_hands_on_no_header_that_is_not_named(ada, listener):
    sent = {"Cookie": "a=b", "X-Remote-User": "root", "Accept": "text/plain"}
    assert ask(ada, "recorded", "/version", sent)[0] == 200
    [heard] = listener.heard
    assert {key for key in heard if key.lower() not in ("host", "accept-encoding")} == {
        "Accept",
        "User-Agent",
        "Authorization",
    }
    assert (heard["Authorization"], heard["Accept"]) == ("Bearer of-the-fleet", "text/plain")


@pytest.mark.parametrize("name", ["tina", "zoë"])
def test_it_asks_in_the_name_of_the_caller_where_the_cluster_is_set_so(kubectl, listener, name):
    Cluster.objects.update(impersonation=True)
    person(name, (Grant.Role.EDITOR, "team"), (Grant.Role.VIEWER, ""))
    assert ask(through(kubectl.as_user(name)), "recorded", "/version")[0] == 200
    [heard] = listener.heard
    impersonated = [value.encode("latin-1").decode() for value in heard.get_all("Impersonate-User")]
    assert impersonated == [f"convoy:{name}"] and "Impersonate-Uid" not in heard
    assert heard.get_all("Impersonate-Group") == ["convoy:editor:team", "convoy:viewer", "system:authenticated"]
    assert heard.get_all("Authorization") == ["Bearer of-the-fleet"] and heard.get_all("User-Agent") == ["convoy"]


@pytest.mark.parametrize(
    "sent", [{"Impersonate-User": "system:admin"}, {"Impersonate-Group": "system:masters"}, {"Impersonate-Uid": "1"}]
)
@pytest.mark.parametrize("is_set", [True, False])
def test_it_asks_in_no_name_that_the_caller_chooses(ada, listener, is_set, sent):
    Cluster.objects.update(impersonation=is_set)
    code, told = ask(ada, "recorded", "/version", sent)
    assert code == 403 and "impersonation is not supported" in told["message"] and not listener.heard


def test_the_groups_are_those_of_now_and_the_product_itself_is_no_person(listener):
    cluster = Cluster.objects.get()
    client = member_clients.client(cluster)
    cluster.impersonation = True
    user = person("tina", (Grant.Role.EDITOR, "team"))
    assert "convoy:editor:team" in impersonation.identity(user).groups
    Grant.objects.all().delete()
    assert impersonation.identity(get_user_model().objects.get()).groups == ("system:authenticated",)
    assert impersonation.in_name_of_author(client, cluster, "system") is client
    assert impersonation.in_name_of_author(client, cluster, "") is client
    assert impersonation.in_name_of_author(client, cluster, "tina") is not client
    cluster.impersonation = False
    assert impersonation.in_name_of_author(client, cluster, "tina") is client


def test_it_takes_a_members_refusal_of_the_fleet_for_none_of_the_caller(ada, listener):
    listener.status = 401
    code, told = ask(ada, "recorded", "/version")
    assert (code, told["message"]) == (503, "cluster recorded refuses the fleet's credentials")


@pytest.fixture
def listener(transactional_db, tmp_path):
    """A member that only listens."""
    now = timezone.now()
    made = pki.ensure(tmp_path / "pki", now)
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Listening)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    http.socket = context.wrap_socket(http.socket, server_side=True)
    http.heard, http.status = [], 200
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    server = f"https://127.0.0.1:{http.server_port}"
    known = member_clients.stored(Access(server, made.authority.read_text(), "of-the-fleet"))
    Cluster.objects.create(name="recorded", server=server, access=known, state_since=now, joined_at=now)
    yield http
    http.shutdown()
    http.server_close()
    thread.join(60)


class _Listening(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.heard.append(self.headers)
        body = b"{}"
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "of=member")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


def test_it_writes_down_what_is_written_to_a_member_and_what_is_refused(kubectl, ada, north):
    person("tina", (Grant.Role.VIEWER, "team"))
    ada.says("create", "-n", "team", "-f", "-", given=json.dumps(a_pod()))
    ada.refused("create", "-n", "team", "-f", "-", given=json.dumps(a_pod()))
    through(kubectl.as_user("tina")).refused("delete", "pod", "a", "-n", "team")
    north.stop()
    ada.refused("delete", "--raw", "/api/v1/namespaces/team/pods/a")
    lines = AuditEntry.objects.filter(door="proxy", cluster="north", kind="pods", namespace="team").order_by("pk")
    assert [(each.actor, each.verb, each.outcome) for each in lines] == [
        ("ada", "create", "done"),
        ("ada", "create", "refused"),
        ("tina", "delete", "refused"),
        ("ada", "delete", "failed"),
    ]


def ask(who, cluster, path, headers=()):
    document = yaml.safe_load(who.file.read_text())
    server = document["clusters"][0]["cluster"]["server"].split("/apis/")[0]
    token = document["users"][0]["user"]["token"]
    url = server + PROXY.format(cluster) + path
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", **dict(headers)})  # noqa: S310
    try:
        with urllib.request.urlopen(request, context=_trusting_all(), timeout=60) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def _trusting_all():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_it_ends_the_members_side_when_the_reader_leaves(ada, north):
    before = len(north.store.listeners)
    with ada.running("get", "pods", "-n", "team", "-w", "-oname"):
        eventually(lambda: len(north.store.listeners) > before)
    eventually(lambda: len(north.store.listeners) == before)
