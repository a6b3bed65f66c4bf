"""Takes a whole resize in a process that kills itself at a step of it (`tests.support.killer`)."""

import django
import numpy.ma  # noqa: F401 - `numpy.unique` imports it at its first call, in each fork
from django.utils import timezone

django.setup()

from jobs.models import Job, Work  # noqa: E402 - the product is set up first
from jobs.services.dispatch import dispatcher  # noqa: E402
from jobs.services.scheduling import loop  # noqa: E402
from jobs.services.submission.changes import resizing  # noqa: E402
from tests.support import killer  # noqa: E402


def resize(name: str, replicas: str) -> None:
    """Every step in its order, as the processes take them: the request, the cycle that decides a growth, the copy."""
    job = Job.objects.get(name=name)
    resizing.resize(job, {"worker": int(replicas)}, by="alice", now=timezone.now())
    loop.run(timezone.now)
    dispatcher.push(Work.objects.get(job_uid=job.uid).pk, timezone.now)


if __name__ == "__main__":
    killer.serve(resize)
