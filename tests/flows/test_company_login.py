"""`convoy login` with an account of the company: browser, provider, product and command line, each a real one."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fleet.core.security.oidc import OidcSettings, read_groups
from fleet.models import Token
from tests.support import oidc_provider
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)
ALICE = {"sub": "a-1", "preferred_username": "alice", "groups": ["ml"]}
_CONVOY = [sys.executable, "-m", "frontend.cli.main"]


@pytest.fixture
def url(tmp_path, settings):
    with oidc_provider.started(tmp_path) as provider, served() as port:
        groups = read_groups('{"ml": ["editor:vision"]}')
        settings.CONVOY_OIDC = OidcSettings(provider.issuer, oidc_provider.CLIENT, oidc_provider.SECRET, groups=groups)
        yield f"http://127.0.0.1:{port}"


def code_for(url: str, login: str) -> tuple[str, httpx.QueryParams]:
    """What the console does with the address that the command line printed, once its user has signed in."""
    wanted = httpx.URL(login).params
    with httpx.Client(base_url=url, follow_redirects=True, cookies={"account": oidc_provider.cookie(ALICE)}) as browser:
        assert browser.get("/oidc/signin/").status_code in (200, 503)  # the console may not be built
        headers = {"X-CSRFToken": _csrf(browser), "Referer": url}
        body = {"challenge": wanted["challenge"], "name": wanted["name"], "expires_in_s": int(wanted["life"])}
        answer = browser.post("/api/v1/login/code/", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json()["code"], wanted


def _csrf(browser: httpx.Client) -> str:
    browser.get("/api/v1/session/")
    return str(browser.cookies["csrftoken"])


def convoy(home: Path, *arguments: str) -> subprocess.Popen[str]:
    # BROWSER names one that does nothing: the test opens the address itself.
    environ = {**os.environ, "XDG_CONFIG_HOME": str(home), "CONVOY_HOME": str(home), "BROWSER": "true", "NO_COLOR": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*_CONVOY, *arguments], env=environ, cwd=home, text=True, **pipes)  # type: ignore[call-overload]


def repository(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))


def printed_address(process: subprocess.Popen[str]) -> str:
    text = ""
    while "/login?" not in text or not text.endswith("\n"):
        line = process.stderr.readline()
        assert line, process.wait(60)
        text += line
    return next(word for word in text.split() if "/login?" in word)


def test_it_signs_in_by_the_browser_of_this_machine(url, tmp_path, monkeypatch):
    repository(monkeypatch)
    process = convoy(tmp_path, "login", url, "--browser", "--life", "1h")
    code, wanted = code_for(url, printed_address(process))
    door = f"http://127.0.0.1:{wanted['port']}/callback"
    assert httpx.get(door, params={"code": code, "state": "another"}).status_code == 400
    assert httpx.get(door, params={"code": code, "state": wanted["state"]}).status_code == 200
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0 and "as alice" in out, err
    assert (row := Token.objects.get()).expires_at.timestamp() - row.created_at.timestamp() == 3600
    credential = convoy(tmp_path, "credential")
    assert credential.communicate(timeout=180)[0].count("cvy_") == 1


def test_it_signs_in_by_a_browser_elsewhere_and_a_code(url, tmp_path, monkeypatch):
    repository(monkeypatch)
    process = convoy(tmp_path, "login", url, "--no-browser")
    code, wanted = code_for(url, printed_address(process))
    assert "port" not in wanted
    out, err = process.communicate(code + "\n", timeout=180)
    assert process.returncode == 0 and "as alice" in out, err
