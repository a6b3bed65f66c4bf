"""The parts of ``kubectl amc`` that need no server: which kubeconfig counts, amounts, how an object is put in words."""

import ssl

import pytest
import yaml

from frontend.cli.amc import describe, kubeconfig, metrics
from frontend.cli.amc.discovery import Resource
from frontend.cli.problems import Problem


def write(path, name, server="https://fleet.example", **context):
    document = {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": f"token-of-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
        "current-context": name,
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def test_it_prefers_the_flag_then_the_variable_then_the_home(home, monkeypatch):
    (home / ".kube").mkdir()
    write(home / ".kube" / "config", "home")
    assert kubeconfig.find().token == "token-of-home"
    monkeypatch.setenv("KUBECONFIG", write(home / "variable", "variable"))
    assert kubeconfig.find().token == "token-of-variable"
    assert kubeconfig.find(write(home / "flag", "flag")).token == "token-of-flag"


def test_it_joins_the_files_of_the_variable_and_takes_the_context_named(home, monkeypatch):
    files = [write(home / "a", "a"), str(home / "missing"), write(home / "b", "b", namespace="vision")]
    monkeypatch.setenv("KUBECONFIG", ":".join(files))
    assert kubeconfig.find().token == "token-of-a"
    found = kubeconfig.find(context="b")
    assert (found.token, found.namespace) == ("token-of-b", "vision")


def test_it_reads_a_token_from_a_file_beside_the_kubeconfig(home):
    file = home / "config"
    write(file, "a")
    file.write_text(file.read_text().replace("token: token-of-a", "tokenFile: secret"))
    (home / "secret").write_text("hush\n")
    assert kubeconfig.find(str(file)).token == "hush"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("https://", "http://"), "must be an https address"),
        (("current-context: a", "current-context: b"), "no context 'b'; it has a"),
        (("token: token-of-a", "exec: {command: x}"), "needs a plugin"),
        (("contexts:", "contexts: ["), "cannot read"),
        (("server:", "certificate-authority-data: '!'\n    server:"), "certificates of the kubeconfig cannot be read"),
    ],
)
def test_it_says_what_is_wrong_with_a_kubeconfig(home, change, told):
    file = home / "config"
    write(file, "a")
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(Problem, match=told):
        kubeconfig.find(str(file))


def test_it_verifies_tls_and_shows_no_token(home):
    found = kubeconfig.find(write(home / "config", "a"))
    assert found.tls.verify_mode is ssl.CERT_REQUIRED and "token-of-a" not in repr(found)


@pytest.mark.parametrize(
    ("amount", "shown"), [("251263829n", "252m"), ("250m", "250m"), ("2", "2000m"), ("nonsense", "0m")]
)
def test_it_rounds_cores_up(amount, shown):
    assert metrics.cores([amount]) == shown


def test_it_shows_shares_only_of_what_is_known():
    assert metrics.share("512Mi", "2Gi") == "25%"
    assert metrics.share("512Mi", "") == metrics.UNKNOWN == metrics.share("1", "0")
    assert metrics.mebibytes(["1Gi", "1024Ki"]) == "1025Mi"


def test_it_puts_an_object_in_words():
    item = {
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "team", "uid": "7", "managedFields": [{}]},
        "spec": {"hostIPC": True, "containers": [{"image": "x"}], "nodeSelector": {"a/b-c": "d"}},
    }
    told = describe.lines(Resource("", "v1", "pods", "pod", "Pod", True), "north", item)
    assert "Name:         a" in told and "Cluster:      north" in told and "Labels:       <none>" in told
    assert "  Host IPC:  true" in [line.replace("True", "true") for line in told]
    assert "    a/b-c:  d" in told and "    Image:  x" in told
    assert not any("anaged" in line for line in told)
