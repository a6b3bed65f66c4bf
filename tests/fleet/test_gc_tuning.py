import subprocess
import sys

import pytest

SHORTEN = "from fleet import gc_tuning; gc_tuning.shorten()"
DOOR = "import deploy.config.asgi"
WORKER = "from celery.signals import worker_ready; import deploy.config.celery; worker_ready.send(None)"

BEAT = """
from celery.signals import beat_init
from deploy.config import celery
celery.app.send_task = print
beat_init.send(None)
"""


@pytest.mark.parametrize("code", [SHORTEN, DOOR, WORKER, BEAT])
def test_a_process_that_runs_for_long_looks_no_more_at_what_it_is_made_of(code: str) -> None:
    told = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{code}\nimport gc; print(gc.get_freeze_count(), len(gc.get_objects()))"],
        capture_output=True,
        text=True,
        check=True,
    )
    frozen, looked_at = map(int, told.stdout.splitlines()[-1].split())
    assert looked_at < frozen / 20
