"""The web process as it is served, before a full database."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.bootstrap import ports
from deploy.bootstrap.home import ROOT

PREPARE = "import django; django.setup(); from tests.scale.crowd import fill; fill()"

TOKEN_FILE = "token"


@contextmanager
def product(home: Path, url: str = "") -> Iterator[tuple[str, int, str]]:
    """Host, port and an administrator's token of the web process as it is served, before a full database."""
    env = {**os.environ, "CONVOY_HOME": str(home), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
    env |= {"DATABASE_URL": url} if url else {}
    port = ports.any_free(0)
    for command in (("-m", "django", "migrate", "-v0"), ("-c", PREPARE)):
        subprocess.run([sys.executable, *command], cwd=ROOT, env=env, check=True)
    command = [
        "-m",
        "uvicorn",
        "deploy.config.asgi:application",
        "--port",
        str(port),
        "--lifespan",
        "off",
        "--no-access-log",
    ]
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, env=env) as server:
        while not answers(port):
            assert server.poll() is None
            time.sleep(0.2)
        yield "127.0.0.1", port, (home / TOKEN_FILE).read_text()
        server.terminate()


def answers(port: int) -> bool:
    try:
        http.client.HTTPConnection("127.0.0.1", port, timeout=1).request("GET", "/livez")
    except OSError:
        return False
    return True
