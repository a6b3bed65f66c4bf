"""How far the training is: kept in memory by `report`, sent by a thread at most once in five seconds.

It is Kubeflow Trainer's status protocol (KEP-2779), by the same three variables that transformers and the Kubeflow SDK read.
What cannot be sent is dropped: a training never waits for it, except for a moment when it has reached its end or has saved.
"""

from __future__ import annotations

import atexit
import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone
from typing import Any

from convoy_runtime import lines, watching
from convoy_runtime.stopping import request_stop, stop_requested

URL, TOKEN, CA = "KUBEFLOW_TRAINER_SERVER_URL", "KUBEFLOW_TRAINER_SERVER_TOKEN", "KUBEFLOW_TRAINER_SERVER_CA_CERT"
"""Environment: where to, the file of the token, and the file of the authority; the last may be empty."""
INTERVAL_S = 5.0
_TIMEOUT_S = 5.0
_AGAIN_S = 1.0
"""From a last step that the endpoint could not keep to the second try."""
_LONGEST_S = 2**31 - 1
"""The most that the protocol has room for."""


class _Progress:
    """What is to be sent."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.total: int | None = None
        self.loss: float | None = None
        self.saved_step: int | None = None
        self.changed = threading.Event()
        self.sending = threading.Lock()
        self.thread: threading.Thread | None = None

    def body(self) -> bytes:
        metrics: dict[str, Any] = {"current_step": self.step, "total_steps": self.total, "loss": self.loss}
        metrics["world_size"], metrics["saved_step"] = lines.world_size(), self.saved_step
        moment = datetime.now(timezone.utc).isoformat()  # noqa: UP017 - also for Python 3.9
        status: dict[str, Any] = {"lastUpdatedTime": moment}
        if self.step is not None and self.total:
            status["progressPercentage"] = int(min(100 * self.step // self.total, 100))
            if (pace := watching.step_seconds()) is not None:
                status["estimatedRemainingSeconds"] = int(min(max((self.total - self.step) * pace, 0), _LONGEST_S))
        known = [{"name": name, "value": str(value)} for name, value in metrics.items() if value is not None]
        return json.dumps({"trainerStatus": {**status, "metrics": known}}).encode()


_progress = _Progress()


def report(step: int, loss: float | None = None, total: int | None = None) -> None:
    """Says that ``step`` steps are done, of ``total`` where that is known. Cheap enough for every step."""
    watching.note_step(step, time.monotonic())
    _progress.step, _progress.loss = step, loss
    _progress.total = total if total is not None else _progress.total
    if not _is_sent():
        return
    _progress.changed.set()
    if _progress.total and step >= _progress.total:
        # The process may end now, and this is what tells its end from a stop.
        if _send():
            time.sleep(_AGAIN_S)
            _progress.changed.set()
            _send()
    elif _progress.thread is None:
        _progress.thread = threading.Thread(target=_send_again_and_again, name="convoy-reports", daemon=True)
        _progress.thread.start()
        atexit.register(_send)


def saved(step: int, tier: str = "disk", seconds: float | None = None) -> None:
    """Says that a checkpoint of ``step`` is complete in ``tier`` (memory or disk), and how long the training waited for it."""
    lines.emit("checkpoint", time.time(), step=step, tier=tier, seconds=seconds)
    _progress.saved_step = step
    if _is_sent():
        _progress.changed.set()
        if stop_requested():
            _send()


def _is_sent() -> bool:
    return lines.rank() == 0 and bool(os.environ.get(URL))


def _send_again_and_again() -> None:
    while True:
        _progress.changed.wait()
        _send()
        time.sleep(INTERVAL_S)


def _send() -> bool:
    """Sends what has changed, if anything has, and returns whether the endpoint asks for it again, later.

    Nothing that goes wrong here is the training's concern.
    """
    with _progress.sending:
        if not _progress.changed.is_set():
            return False
        _progress.changed.clear()
        try:
            if _post(_progress.body()).get("stop") is True:
                request_stop()
        except urllib.error.HTTPError as e:
            return e.code == 503
        except Exception:  # noqa: BLE001 - it would end the thread for good, or the training at its last step
            return False
        return False


def _post(body: bytes) -> dict[str, Any]:
    """The answer. Raises what the network, the files and their parsers raise."""
    url = os.environ[URL]
    if not url.startswith(("https://", "http://")):
        raise ValueError(url)
    with open(os.environ.get(TOKEN, ""), encoding="utf-8") as file:  # noqa: PTH123 - it is renewed in its place
        headers = {"Authorization": f"Bearer {file.read().strip()}", "Content-Type": "application/json"}
    authority = os.environ.get(CA) or None
    context = ssl.create_default_context(cafile=authority) if url.startswith("https://") else None
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - looked at above
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as answer:  # noqa: S310
        read = json.loads(answer.read(65536) or b"{}")
    return read if isinstance(read, dict) else {}
