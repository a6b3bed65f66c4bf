"""Takes a whole reclaim in a process that kills itself at a step of it (`tests.support.killer`)."""

import time
from datetime import timedelta
from uuid import UUID

import django
import numpy.ma  # noqa: F401 - `numpy.unique` imports it at its first call, in each fork
from django.utils import timezone

django.setup()

from jobs.models import Work  # noqa: E402 - the product is set up first
from jobs.services.dispatch import dispatcher  # noqa: E402
from jobs.services.scheduling import loop  # noqa: E402
from tests.support import killer  # noqa: E402

RETRY, PATIENCE_S = timedelta(seconds=20), 60.0


def take_back(victim: str) -> None:
    """Every step in its order, as the workers take them: order, suspend, remove, queue again, place the preemptor, send it."""
    loop.run(timezone.now)
    work, give_up = Work.objects.get(job_uid=UUID(victim)), time.monotonic() + PATIENCE_S
    while work.state != Work.State.GONE and time.monotonic() < give_up:
        # Later than any retry is due: a member removes a copy in its own time.
        dispatcher.push(work.pk, lambda: timezone.now() + RETRY)
        loop.advance_evictions(timezone.now())
        work.refresh_from_db()
    loop.run(timezone.now)
    for pk in Work.objects.filter(state=Work.State.PENDING).values_list("pk", flat=True):
        dispatcher.push(pk, timezone.now)


if __name__ == "__main__":
    killer.serve(take_back)
