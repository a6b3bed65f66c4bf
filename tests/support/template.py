"""A migrated SQLite database, made once for a state of the migrations; whatever needs one is given a copy.

To apply all migrations takes seconds of processor time, in each process of a test run and for each product that a test
starts. The first that needs the database makes it, under a lock; others wait for it.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from deploy.bootstrap.home import ROOT

FOLDER = ROOT / ".convoy" / "tests"


def copy_to(path: Path) -> None:
    """A database that is migrated and empty."""
    shutil.copyfile(file(), path)


def home_at(path: Path) -> dict[str, str]:
    """A home with such a database, and the environment in which the product runs from it."""
    path.mkdir(parents=True, exist_ok=True)
    copy_to(path / "convoy.sqlite3")
    return environment(path)


def environment(home: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    return {**env, "CONVOY_HOME": str(home), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}


@cache
def file() -> Path:
    """Of this state of the migrations; made where there is none yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    template = FOLDER / f"{_digest()}.sqlite3"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            _make(template)
    return template


def _make(template: Path) -> None:
    """Whole or not at all; templates of other states go."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        command = [sys.executable, "-m", "django", "migrate", "-v0"]
        subprocess.run(command, cwd=ROOT, env=environment(Path(folder)), check=True)
        draft = Path(folder, "draft")
        with (
            closing(sqlite3.connect(Path(folder, "convoy.sqlite3"))) as source,
            closing(sqlite3.connect(draft)) as copy,
        ):
            source.backup(copy)
        for old in FOLDER.glob("*.sqlite3"):
            old.unlink()
        draft.rename(template)


@cache
def _digest() -> str:
    """Of every migration, and of what applies them."""
    from django import VERSION
    from django.apps import apps

    state = hashlib.sha256(f"{sys.version} {VERSION} {sqlite3.sqlite_version}".encode())
    for app in sorted(apps.get_app_configs(), key=lambda each: each.label):
        state.update(f"{app.label} {sorted(app.models)}".encode())
        for file in sorted(Path(app.path, "migrations").glob("*.py")):
            state.update(file.name.encode() + file.read_bytes())
    return state.hexdigest()[:16]
