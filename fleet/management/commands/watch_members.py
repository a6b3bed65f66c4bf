"""The watcher process: follows nodes, pods and jobs of the members that it owns until it is stopped."""

import random
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from fleet import gc_tuning
from fleet.api.http import exposition
from fleet.services.watching.manager import WatchManager


class Command(BaseCommand):
    help = "Watches all members and keeps nodes, pods and job states up to date."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        gc_tuning.shorten()
        exposition.serve()
        WatchManager(stop, random.Random()).run()  # noqa: S311
