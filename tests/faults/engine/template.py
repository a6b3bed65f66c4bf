"""What every world begins with, made once for a run: a migrated database with a user, quotas and joined members."""

import os
import shutil
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from deploy.bootstrap import ports
from tests.faults.engine import members, users
from tests.faults.engine.nursery import use
from tests.faults.engine.servers import Postgres, make_postgres, unprivileged

TOKEN = "token"
NO_BROKER = "redis://127.0.0.1:1/0"
_SYNCED_S = 60.0


def make(folder: Path, *, server: bool) -> None:
    home = folder / "home"
    home.mkdir(parents=True)
    if not server:
        in_fork(lambda: _fill(folder, {"NAME": str(folder / "database.sqlite3")}, home), folder / "template.log")
        return
    make_postgres(folder / "postgres")
    postgres = Postgres(folder / "postgres", ports.any_free(0), folder / "postgres.log")
    postgres.start()
    try:
        in_fork(lambda: _fill(folder, postgres.database(), home), folder / "template.log")
        postgres.make_steerable_clock()
    finally:
        postgres.end()


def copy(folder: Path, to: Path, *, server: bool) -> None:
    """For one world; its members get the ports that are written into their folders and into the rows of the clusters."""
    shutil.copytree(folder, to, symlinks=True)
    if server:
        unprivileged(to / "postgres")


def in_fork(body: Callable[[], None], log: Path) -> None:
    """Runs it in a process of its own: connections and threads that it leaves behind go with that."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            body()
            code = 0
        except BaseException:  # noqa: BLE001 - the parent fails
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0, log.read_text()[-3000:]


def move_members(database: dict[str, Any], home: Path, where: dict[str, int]) -> None:
    """The members are at these ports now."""
    from fleet.models import Cluster

    use(database, NO_BROKER, home)
    for row in Cluster.objects.all():
        server = f"https://127.0.0.1:{where[row.name]}"
        row.server, row.access = server, {**row.access, "server": server}
        row.save(update_fields=["server", "access"])


def _fill(folder: Path, database: dict[str, Any], home: Path) -> None:
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.utils import timezone

    from fleet.kube import pki
    from fleet.services.authorization import access
    from fleet.services.clusters import clusters
    from jobs.services.submission import manifests, submit

    use(database, NO_BROKER, home)
    call_command("migrate", "--noinput", verbosity=0)
    admin = get_user_model().objects.create_superuser("admin", "", "not-used-anywhere")
    _, token = access.mint(admin, "engine", life=timedelta(days=1), now=timezone.now())
    (folder / TOKEN).write_text(token)
    submit.apply(manifests.parse(users.quota_tree().encode()), by="admin", now=timezone.now())
    pki.ensure(settings.CONVOY_HOME / "pki", timezone.now(), [])
    fleet = members.Members(folder / "members")
    for name in members.NAMES:
        fleet.start(name)
        clusters.join(name, yaml.safe_dump(fleet.kubeconfig(name)), by="admin", now=timezone.now())
    deadline = time.monotonic() + _SYNCED_S
    while any(len(contents.nodes) < members.NODES for contents in fleet.contents().values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    fleet.stop()
