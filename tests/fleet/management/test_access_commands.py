"""What the bootstrap calls before anybody can sign in: the first admin, a token, a link."""

import stat
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.utils import timezone

from fleet.services.authorization import access

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.CONVOY_HOME = tmp_path
    settings.AUTHENTICATION_BACKENDS = ["fleet.api.sign_in.passwords.PasswordBackend"]
    return tmp_path


def said(*argv: str) -> str:
    out = StringIO()
    call_command(*argv, stdout=out)
    return out.getvalue().strip()


def test_it_makes_an_admin_whose_password_only_the_owner_reads(home: Path) -> None:
    assert "was made" in said("ensure_admin")
    file = home / "admin-password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = authenticate(username="admin", password=file.read_text().strip())
    assert found is not None and access.may(found, "detach", "Cluster")


def test_it_takes_the_password_somebody_chose_and_leaves_an_existing_admin_alone(home: Path) -> None:
    (home / "admin-password").write_text("chosen by a person\n")
    said("ensure_admin")
    (home / "admin-password").write_text("written later\n")
    assert "already" in said("ensure_admin")
    assert authenticate(username="admin", password="chosen by a person") is not None


def test_it_mints_a_token_that_counts() -> None:
    said("ensure_admin")
    text = said("mint_token", "--name", "bootstrap", "--expires-in", "60")
    assert access.verify(text, now=timezone.now()).name == "bootstrap"


def test_it_makes_a_link_that_signs_in(client: Any) -> None:
    said("ensure_admin")
    assert client.post(said("signin_link")).status_code == 302
    assert client.get("/api/v1/me/").json()["username"] == "admin"


@pytest.mark.parametrize(
    "argv", [("mint_token", "--name", "x", "--user", "nobody"), ("signin_link", "--user", "nobody")]
)
def test_it_knows_nobody_of_that_name(argv: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="nobody"):
        said(*argv)


def test_it_refuses_a_life_that_makes_no_sense() -> None:
    said("ensure_admin")
    with pytest.raises(CommandError, match="must be between"):
        said("mint_token", "--name", "x", "--expires-in", "-5")
