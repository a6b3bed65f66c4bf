"""The kubeconfig that `write_kubeconfig` makes: private, kept while its token is good, made anew when it is not."""

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from fleet.services.authorization import access


def written(file, user="ada", server="https://127.0.0.1:8443"):
    call_command("write_kubeconfig", user=user, server=server, file=file)
    return yaml.safe_load(file.read_text())


def token_in(document):
    return document["users"][0]["user"]["token"]


def test_it_can_be_read_by_its_owner_only_and_names_its_authority(admin, tmp_path):
    document = written(tmp_path / "kubeconfig")
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600
    assert document["clusters"][0]["cluster"]["certificate-authority-data"]


def test_its_context_names_the_namespace_that_commands_without_one_use(admin, tmp_path):
    assert written(tmp_path / "kubeconfig")["contexts"][0]["context"]["namespace"] == "default"


def test_it_keeps_a_good_token_when_the_server_moves(admin, tmp_path):
    before = written(tmp_path / "kubeconfig")
    after = written(tmp_path / "kubeconfig", server="https://127.0.0.1:9443")
    assert token_in(after) == token_in(before)
    assert after["clusters"][0]["cluster"]["server"].endswith(":9443")


def test_it_replaces_a_token_that_was_revoked(admin, tmp_path):
    before = token_in(written(tmp_path / "kubeconfig"))
    access.revoke(admin, access.verify(before, now=timezone.now()).pk, now=timezone.now())
    assert token_in(written(tmp_path / "kubeconfig")) != before


def test_it_refuses_a_user_there_is_not(db, tmp_path):
    with pytest.raises(CommandError, match="no user nobody"):
        written(tmp_path / "kubeconfig", user="nobody")
