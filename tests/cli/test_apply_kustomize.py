"""`convoy apply -k`, with the kustomize of a stock kubectl, and the completion scripts of all shells."""

import stat

import pytest

from frontend.cli import kustomize
from frontend.cli.problems import Problem

APPLIED = {
    "results": [{"kind": "PyTorchJob", "namespace": "default", "name": "llama", "action": "created", "warnings": ["w"]}]
}

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: b\n"


@pytest.fixture
def overlay(convoy):
    folder = convoy.home / "overlay"
    folder.mkdir()
    (folder / "settings.yaml").write_text(CONFIG_MAP)
    (folder / "kustomization.yaml").write_text("namePrefix: team-\nresources: [settings.yaml]\n")
    return folder


def test_it_sends_what_kustomize_builds(server, convoy, overlay):
    server.on("apply", APPLIED, method="POST")
    said = convoy("apply", "-k", "overlay")
    assert said.code == 0 and b"name: team-settings" in server.sent("POST").body


def test_it_says_what_is_wrong_with_a_kustomization_and_sends_nothing(server, convoy, overlay):
    (overlay / "settings.yaml").unlink()
    said = convoy("apply", "-k", "overlay")
    assert said.code == 2 and "cannot build overlay" in said.err and "settings.yaml" in said.err
    (convoy.home / "plain").mkdir()
    said = convoy("apply", "-k", "plain")
    assert said.code == 3 and "no kustomization.yaml in plain" in said.err
    said = convoy("apply")
    assert said.code == 2 and "-f FILE, or -k DIR" in said.err
    said = convoy("apply", "-k", "overlay", "-f", "x.yaml")
    assert said.code == 2 and not [request for request in server.seen if request.method == "POST"]


def test_the_kubectl_on_path_builds_it_and_without_one_it_says_so(convoy, overlay, monkeypatch):
    program = convoy.home / "kubectl"
    program.write_text("#!/bin/sh\necho kind: Built\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{convoy.home}:/usr/bin:/bin")
    assert kustomize.build(str(overlay)) == b"kind: Built\n"
    monkeypatch.setattr(kustomize.shutil, "which", lambda *_, **__: None)
    with pytest.raises(Problem, match="-k needs kubectl"):
        kustomize.build(str(overlay))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "pwsh"])
def test_it_prints_the_completion_script_of_each_shell(convoy, shell):
    said = convoy("completion", shell)
    assert said.code == 0 and "_CONVOY_COMPLETE" in said.out


def test_it_names_the_shells_it_knows(convoy):
    said = convoy("completion", "csh")
    assert said.code == 2 and "bash" in said.err
