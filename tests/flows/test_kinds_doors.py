"""Every kind at every door: a stock kubectl, REST and the command line know it by the registry alone."""

from pathlib import Path

import pytest
import yaml

from frontend.cli import job_kinds
from frontend.cli.config import Target
from jobs.kinds import registry
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FILES = sorted(path for path in EXAMPLES.glob("*.yaml") if path.stem not in ("policy", "mpijob-v1", "trainingruntime"))
RUNTIME = EXAMPLES / "trainingruntime.yaml"


def test_kubectl_gets_describes_and_deletes_every_kind(world, admin, tmp_path):
    world.still("north", 8)
    with served(tmp_path) as kubectl:
        ada = kubectl.as_user("ada")
        assert "created" in ada.says("apply", "-f", str(RUNTIME))
        for file in FILES:
            manifest = yaml.safe_load(file.read_text())
            resource = registry.kind_of(manifest["apiVersion"], manifest["kind"]).resource
            named = f"{resource.plural}.{resource.version}.{resource.group}"
            assert "created" in ada.says("apply", "-f", str(file))
            header, row = ada.says("get", named).splitlines()
            assert (header.split()[0], header.split()[-1]) == ("NAME", "AGE")
            assert row.split()[0] == manifest["metadata"]["name"]
            described = ada.says("describe", named, manifest["metadata"]["name"])
            assert manifest["metadata"]["name"] in described and "Submitted by ada" in described
            assert "deleted" in ada.says("delete", named, manifest["metadata"]["name"], "--wait=false")


def test_kubectl_knows_the_plain_names(world, admin, tmp_path):
    with served(tmp_path) as kubectl:
        ada = kubectl.as_user("ada")
        for kind in registry.everything():
            plain = "" if kind.resource.kind == "Job" else kind.resource.kind.lower()
            for word in (plain or f"jobs.{kind.resource.group}", *kind.short_names):
                assert "No resources found" in ada.says("get", word)


def test_the_list_of_jobs_is_asked_for_by_kind(world, admin, client):
    client.force_login(admin)
    world.apply(*(file.read_text() for file in (*FILES, RUNTIME)))
    for kind, count in {"TFJob": 1, "RayJob": 1, "SparkApplication": 1, "PyTorchJob": 0}.items():
        assert len(client.get(f"/api/v1/jobs/?kind={kind}").json()["results"]) == count


def test_the_command_line_learns_every_kind_from_the_server(world, admin, client, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    client.force_login(admin)

    class Here:
        target = Target("http://here")

        def list(self, path):
            return client.get(f"/api/v1/{path}").json()["results"]

    for kind in registry.everything():
        found = job_kinds.find(Here(), f"{kind.resource.plural}.{kind.resource.group}")
        assert (found.api_kind, found.path) == (kind.resource.kind, "jobs")
        assert {job_kinds.find(Here(), word).api_kind for word in kind.short_names} <= {kind.resource.kind}
