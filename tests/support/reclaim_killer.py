"""Takes a whole reclaim in a process of its own, which kills itself with SIGKILL right before or right after its n-th write.

Between two writes nothing changes but the member, and that change lies between the write before and the write after it; a
transaction is gone with every write of it. So these are all the steps there are. Started once, it forks for
each request: reads ``victim step`` from its input and answers ``killed`` or ``done``.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import django

RETRY, PATIENCE_S = timedelta(seconds=20), 10.0
_WRITES = ("INSERT", "UPDATE", "DELETE")


def main() -> None:
    django.setup()
    from django.conf import settings
    from django.db import connections

    settings.DATABASES["default"]["NAME"] = os.environ["KILLER_DATABASE"]
    connections.close_all()
    print("ready", flush=True)
    for request in sys.stdin:
        victim, step = request.split()
        child = os.fork()
        if child == 0:
            _try(UUID(victim), int(step))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"broke {status}", flush=True)


def _try(victim: UUID, step: int) -> None:
    from django.db import connection

    passed = 0

    def count(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        nonlocal passed
        writes = sql.startswith(_WRITES)
        lasts = writes and not connection.in_atomic_block
        passed += writes
        _die_if(writes and passed == step)
        found = execute(sql, *rest)
        passed += lasts
        _die_if(lasts and passed == step)
        return found

    with connection.execute_wrapper(count):
        take_back(victim)


def _die_if(now: bool) -> None:
    if now:
        os.kill(os.getpid(), signal.SIGKILL)


def take_back(victim: UUID) -> None:
    """Every step in its order, as the workers take them: order, suspend, remove, queue again, place the preemptor, send it."""
    from django.utils import timezone

    from jobs.models import Work
    from jobs.services.dispatch import dispatcher
    from jobs.services.scheduling import loop

    loop.run(timezone.now)
    work, give_up = Work.objects.get(job_uid=victim), time.monotonic() + PATIENCE_S
    while work.state != Work.State.GONE and time.monotonic() < give_up:
        # Later than any retry is due: a member removes a copy in its own time.
        dispatcher.push(work.pk, lambda: timezone.now() + RETRY)
        loop.advance_evictions(timezone.now())
        work.refresh_from_db()
    loop.run(timezone.now)
    for pk in Work.objects.filter(state=Work.State.PENDING).values_list("pk", flat=True):
        dispatcher.push(pk, timezone.now)


if __name__ == "__main__":
    main()
