"""Cookies and HTTPS: safe by default as soon as the product is reached by another name than loopback."""

import json
import subprocess
import sys

import pytest

from deploy.bootstrap.home import ROOT
from tests.support import template

SHOW = """
import json
from deploy.config import settings
names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS")
print(json.dumps([getattr(settings, name, None) for name in names]))
"""
PLAIN, SAFE = [None, None, None], [True, True, 31_536_000]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, PLAIN),
        ({"CONVOY_ALLOWED_HOSTS": "localhost,127.0.0.1"}, PLAIN),
        ({"CONVOY_ALLOWED_HOSTS": "convoy.example.com,localhost"}, SAFE),
        ({"CONVOY_ALLOWED_HOSTS": "*"}, SAFE),
        ({"CONVOY_ALLOWED_HOSTS": "convoy.example.com", "CONVOY_HTTPS": "false"}, PLAIN),
        ({"CONVOY_HTTPS": "true", "CONVOY_HSTS_S": "0"}, [True, True, 0]),
    ],
    ids=str,
)
def test_it_is_plain_on_loopback_alone(tmp_path, environ, expected):
    env = {**template.environment(tmp_path), **environ}
    output = subprocess.run([sys.executable, "-c", SHOW], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert json.loads(output.stdout) == expected


ASK = """
import django
django.setup()
from django.test import Client
answer = Client().get("/", headers={"Host": "convoy.example.com", "X-Forwarded-Proto": "https"})
print(answer.headers.get("Strict-Transport-Security"))
"""


def test_a_browser_behind_the_proxy_is_told_to_stay_with_https(tmp_path):
    env = {**template.environment(tmp_path), "CONVOY_ALLOWED_HOSTS": "convoy.example.com"}
    output = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert output.stdout.splitlines()[-1] == "max-age=31536000"
