"""Takes pods from a job for a preemptor in a process that kills itself at a step of it (`tests.support.killer`)."""

import django
import numpy.ma  # noqa: F401 - `numpy.unique` imports it at its first call, in each fork
from django.utils import timezone

django.setup()

from jobs.models import Job, Work  # noqa: E402 - the product is set up first
from jobs.services.dispatch import dispatcher  # noqa: E402
from jobs.services.scheduling import loop  # noqa: E402
from tests.support import killer  # noqa: E402


def shrink(name: str) -> None:
    """Every step in its order: the cycle that takes the pods, the copy that becomes smaller, the cycle after it."""
    loop.run(timezone.now)
    dispatcher.push(Work.objects.get(job_uid=Job.objects.get(name=name).uid).pk, timezone.now)
    loop.run(timezone.now)


if __name__ == "__main__":
    killer.serve(shrink)
