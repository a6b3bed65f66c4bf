"""Every kind at every door: a stock kubectl, REST and the command line know it by the registry alone."""

from pathlib import Path

import pytest
import yaml

from frontend.cli import kinds as words
from jobs.kinds import registry
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FILES = sorted(path for path in EXAMPLES.glob("*.yaml") if path.stem not in ("policy", "mpijob-v1"))


def test_kubectl_gets_describes_and_deletes_every_kind(world, admin, tmp_path):
    world.still("north", 8)
    with served(tmp_path) as kubectl:
        ada = kubectl.as_user("ada")
        for file in FILES:
            manifest = yaml.safe_load(file.read_text())
            resource = registry.of(manifest["apiVersion"], manifest["kind"]).resource
            named = f"{resource.plural}.{resource.version}.{resource.group}"
            assert "created" in ada.says("apply", "-f", str(file))
            header, row = ada.says("get", named).splitlines()
            assert (header.split()[0], header.split()[-1]) == ("NAME", "AGE")
            assert row.split()[0] == manifest["metadata"]["name"]
            assert resource.kind in ada.says("describe", named, manifest["metadata"]["name"])
            assert "deleted" in ada.says("delete", named, manifest["metadata"]["name"], "--wait=false")


def test_kubectl_knows_the_plain_names(world, admin, tmp_path):
    with served(tmp_path) as kubectl:
        ada = kubectl.as_user("ada")
        for word in (
            "tfjob",
            "mpijob",
            "trainingjob",
            "elasticjob",
            "rayjob",
            "jobset",
            "sparkapplication",
            "pytorchjob",
        ):
            assert "No resources found" in ada.says("get", word)
        assert "No resources found" in ada.says("get", "jobs.batch.volcano.sh")


def test_the_list_of_jobs_is_asked_for_by_kind(world, admin, client):
    client.force_login(admin)
    world.apply(*(file.read_text() for file in FILES))
    for kind, count in {"TFJob": 1, "RayJob": 1, "SparkApplication": 1, "PyTorchJob": 0}.items():
        assert len(client.get(f"/api/v1/jobs/?kind={kind}").json()["results"]) == count


def test_the_command_line_has_a_word_for_every_kind():
    for kind in registry.everything():
        plural, group = kind.resource.plural, kind.resource.group
        found = words.find(f"{plural}.{group}")
        assert found is not None and found.api_kind == kind.resource.kind
