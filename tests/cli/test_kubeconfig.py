"""``convoy kubeconfig`` through the real REST API: merged, private, good for a stock kubectl, and never half-written."""

import json
import stat
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Token
from fleet.services.authorization import access
from tests.cli.builders import Convoy
from tests.support.kubectl import Person, served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def convoy(live_server, admin, tmp_path):
    made = Convoy(tmp_path, live_server.url)
    made.env["CONVOY_TOKEN"] = access.mint(admin, "test", life=None, now=timezone.now())[1]
    return made


def test_it_writes_one_that_kubectl_works_with(convoy, settings, tmp_path):
    with served(tmp_path) as kubectl:
        settings.CONVOY_KUBE_PORT = kubectl.port
        kubectl.as_user("ada")
        said = convoy("kubeconfig", "--token-life", "2h")
        assert said.code == 0, said.err
        file = tmp_path / ".kube" / "config"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "ada" in Person(file, tmp_path).says("auth", "whoami")
    left = Token.objects.latest("pk").expires_at - timezone.now()
    assert timedelta(hours=1) < left <= timedelta(hours=2)


def test_its_token_ends_with_a_short_sign_in_unless_a_longer_life_is_asked_for(convoy, admin):
    row, convoy.env["CONVOY_TOKEN"] = access.mint(admin, "login", life=timedelta(hours=12), now=timezone.now())
    said = convoy("kubeconfig", "-o", "-")
    assert said.code == 0, said.err
    assert Token.objects.latest("pk").ends_at == row.ends_at
    refused = convoy("kubeconfig", "-o", "-", "--token-life", "30d")
    assert refused.code != 0 and "a token mints none that lasts longer" in refused.err
    assert Token.objects.latest("pk").parent_id == row.pk and Token.objects.filter(parent=row).count() == 1


def test_it_writes_one_without_a_token_that_asks_the_command_line_for_it(convoy, settings, tmp_path):
    with served(tmp_path) as kubectl:
        settings.CONVOY_KUBE_PORT = kubectl.port
        kubectl.as_user("ada")
        before = Token.objects.count()
        said = convoy("kubeconfig", "--exec")
        assert said.code == 0, said.err
    file = tmp_path / ".kube" / "config"
    assert convoy.env["CONVOY_TOKEN"] not in file.read_text() and Token.objects.count() == before
    helper = yaml.safe_load(file.read_text())["users"][0]["user"]["exec"]
    assert helper["command"] == "convoy"
    answer = json.loads(convoy(*helper["args"]).out)
    assert (answer["apiVersion"], answer["kind"]) == (helper["apiVersion"], "ExecCredential")
    assert answer["status"]["token"] == convoy.env["CONVOY_TOKEN"]


def test_it_keeps_what_else_is_in_the_file(convoy, tmp_path):
    other = {"name": "other", "context": {"cluster": "other", "user": "other"}}
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({"contexts": [other], "preferences": {}, "current-context": "other"}))
    for _ in range(2):
        said = convoy("kubeconfig", "--context", "fleet", "-n", "vision", KUBECONFIG=str(file))
        assert said.code == 0, said.err
    document = yaml.safe_load(file.read_text())
    mine = {"name": "fleet", "context": {"cluster": "fleet", "user": "fleet", "namespace": "vision"}}
    assert document["contexts"] == [other, mine]
    assert (document["current-context"], document["preferences"], len(document["users"])) == ("fleet", {}, 1)


def test_it_prints_it_instead(convoy, tmp_path):
    said = convoy("kubeconfig", "-o", "-")
    assert yaml.safe_load(said.out)["current-context"] == "convoy" and not (tmp_path / ".kube").exists()


@pytest.mark.parametrize(
    ("words", "content", "told"),
    [
        (["--token-life", "soon"], "", "is not a duration"),
        (["--token-life", "400d"], "", "expires_in_s"),
        ([], "- a list", "is not a kubeconfig"),
        ([], "{", "cannot read"),
    ],
)
def test_it_leaves_the_file_as_it_is_when_something_is_wrong(convoy, tmp_path, words, content, told):
    file = tmp_path / "config"
    file.write_text(content)
    said = convoy("kubeconfig", *words, "--output", str(file))
    assert said.code != 0 and told in said.err
    assert file.read_text() == content
