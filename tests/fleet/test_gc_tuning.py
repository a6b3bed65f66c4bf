import subprocess
import sys

import pytest

SHORTEN = "from fleet import gc_tuning; gc_tuning.shorten()"
DOOR = "import deploy.config.asgi"
WORKER = "from celery.signals import worker_ready; import deploy.config.celery; worker_ready.send(None)"


@pytest.mark.parametrize("code", [SHORTEN, DOOR, WORKER])
def test_a_process_that_runs_for_long_looks_no_more_at_what_it_is_made_of(code: str) -> None:
    told = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{code}\nimport gc; print(gc.get_freeze_count(), len(gc.get_objects()))"],
        capture_output=True,
        text=True,
        check=True,
    )
    frozen, looked_at = map(int, told.stdout.split())
    assert looked_at < frozen / 20
